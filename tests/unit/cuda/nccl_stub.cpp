#include "nccl_stub.h"

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/nccl_library.h"

using footplate::nccl_abi::Config;
using footplate::nccl_abi::Status;
using footplate::nccl_abi::UniqueId;

/// A communicator of the stub.
struct footplate::nccl_abi::Communicator {
  std::string id;
  int ranks = 0;
  bool ready = false;
};
using Comm = footplate::nccl_abi::Communicator*;

namespace {

std::mutex mutex;
std::condition_variable changed;
std::vector<std::string> calls;
std::map<std::string, std::string> faults;
std::set<Comm> live;
std::map<std::string, int> arrived;  ///< ranks, by id
int ids = 0;
int misuse = 0;
int hanging = 0;
int epoch = 0;  ///< one more with each reset
bool broken = false;
int told_version = footplate::nccl_abi::kOldest;
thread_local int depth = 0;
thread_local bool let_go = false;  ///< it has hung: what it still calls is of a test that is over
thread_local std::vector<Comm> freed_in_group;

Status enter(const char* name, const std::string& detail = "") {
  std::unique_lock lock(mutex);
  if (let_go) return footplate::nccl_abi::kSystemError;
  calls.push_back(detail.empty() ? name : std::string(name) + ":" + detail);
  const std::string fault = faults.contains(name) ? faults[name] : "";
  if (fault == "hang") {
    ++hanging;
    const int mine = epoch;
    changed.wait(lock, [&] { return epoch != mine; });
    --hanging;
    let_go = true;
    changed.notify_all();
    return footplate::nccl_abi::kSystemError;
  }
  return fault == "fail" ? footplate::nccl_abi::kSystemError : footplate::nccl_abi::kSuccess;
}

bool is_live(Comm comm) {
  const std::lock_guard lock(mutex);
  if (live.contains(comm)) return true;
  ++misuse;
  return false;
}

Status release(Comm comm) {
  if (!is_live(comm)) return footplate::nccl_abi::kInvalidArgument;
  const std::lock_guard lock(mutex);
  live.erase(comm);
  delete comm;
  return footplate::nccl_abi::kSuccess;
}

}  // namespace

extern "C" {

void stub_reset() {
  std::unique_lock lock(mutex);
  ++epoch;
  changed.notify_all();
  changed.wait(lock, [] { return hanging == 0; });
  for (Comm comm : live) delete comm;
  live.clear();
  calls.clear();
  faults.clear();
  arrived.clear();
  misuse = 0;
  broken = false;
  told_version = footplate::nccl_abi::kOldest;
}
void stub_fault(const char* call, const char* fault) {
  const std::lock_guard lock(mutex);
  faults[call] = fault;
}
void stub_break() {
  const std::lock_guard lock(mutex);
  broken = true;
}
const char* stub_calls() {
  static std::string text;
  const std::lock_guard lock(mutex);
  text.clear();
  for (const auto& call : calls) text += (text.empty() ? "" : " ") + call;
  return text.c_str();
}
int stub_live() {
  const std::lock_guard lock(mutex);
  return static_cast<int>(live.size());
}
int stub_misuse() {
  const std::lock_guard lock(mutex);
  return misuse;
}
int stub_hanging() {
  const std::lock_guard lock(mutex);
  return hanging;
}

void stub_version(int version) {
  const std::lock_guard lock(mutex);
  told_version = version;
}

Status ncclGetVersion(int* version) {
  const std::lock_guard lock(mutex);
  *version = told_version;
  return footplate::nccl_abi::kSuccess;
}
Status ncclGetUniqueId(UniqueId* id) {
  const Status status = enter("ncclGetUniqueId");
  const std::lock_guard lock(mutex);
  std::memset(id, 0, sizeof(*id));
  const std::string text = "id " + std::to_string(++ids);
  std::memcpy(id->bytes, text.c_str(), text.size());
  return status;
}
Status ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
  const Status status = enter("ncclCommInitRankConfig", std::to_string(rank) + "/" + std::to_string(ranks) +
                                                            (config->blocking == 0 ? "" : " blocking"));
  if (status != footplate::nccl_abi::kSuccess) return status;
  const std::lock_guard lock(mutex);
  *comm = new footplate::nccl_abi::Communicator{id.bytes, ranks, false};
  live.insert(*comm);
  if (faults["ncclCommInitRankConfig"] != "never") ++arrived[id.bytes];
  return footplate::nccl_abi::kInProgress;
}
Status ncclCommGetAsyncError(Comm comm, Status* error) {
  if (!is_live(comm)) return footplate::nccl_abi::kInvalidArgument;
  const std::lock_guard lock(mutex);
  *error = broken                             ? footplate::nccl_abi::kRemoteError
           : arrived[comm->id] >= comm->ranks ? footplate::nccl_abi::kSuccess
                                              : footplate::nccl_abi::kInProgress;
  return footplate::nccl_abi::kSuccess;
}
Status ncclCommFinalize(Comm comm) {
  const Status status = enter("ncclCommFinalize");
  return is_live(comm) ? status : footplate::nccl_abi::kInvalidArgument;
}
Status ncclCommDestroy(Comm comm) {
  const Status status = enter("ncclCommDestroy");
  return status == footplate::nccl_abi::kSuccess ? release(comm) : status;
}
/// In a group NCCL frees at its end.
Status ncclCommAbort(Comm comm) {
  const Status status = enter("ncclCommAbort");
  if (status != footplate::nccl_abi::kSuccess) return status;
  if (depth == 0) return release(comm);
  freed_in_group.push_back(comm);
  return footplate::nccl_abi::kSuccess;
}
Status ncclGroupStart() {
  ++depth;
  return enter("ncclGroupStart");
}
Status ncclGroupEnd() {
  --depth;
  const Status status = enter("ncclGroupEnd");
  if (!let_go)
    for (Comm comm : freed_in_group) release(comm);
  freed_in_group.clear();
  return status;
}
Status ncclAllReduce(const void*, void*, std::size_t count, int, int, Comm comm, void*) {
  const Status status = enter("ncclAllReduce", std::to_string(count));
  return is_live(comm) ? status : footplate::nccl_abi::kInvalidArgument;
}
Status ncclAllReduceConfig(const void*, void*, std::size_t count, int, int, Comm comm, void*,
                           const footplate::nccl_abi::CollectiveConfig* config) {
  const Status status = enter("ncclAllReduceConfig", std::to_string(count) + ":" + config->selection + ":" +
                                                         std::to_string(config->max_ctas));
  return is_live(comm) ? status : footplate::nccl_abi::kInvalidArgument;
}
Status ncclBroadcast(const void*, void*, std::size_t, int, int, Comm, void*) {
  return enter("ncclBroadcast");
}
Status ncclAllGather(const void*, void*, std::size_t, int, Comm, void*) {
  return enter("ncclAllGather");
}
Status ncclReduceScatter(const void*, void*, std::size_t, int, int, Comm, void*) {
  return enter("ncclReduceScatter");
}
Status ncclSend(const void*, std::size_t count, int, int to, Comm comm, void*) {
  const Status status = enter("ncclSend", std::to_string(count) + ":to:" + std::to_string(to));
  return is_live(comm) ? status : footplate::nccl_abi::kInvalidArgument;
}
Status ncclRecv(void*, std::size_t count, int, int from, Comm comm, void*) {
  const Status status = enter("ncclRecv", std::to_string(count) + ":from:" + std::to_string(from));
  return is_live(comm) ? status : footplate::nccl_abi::kInvalidArgument;
}
const char* ncclGetErrorString(Status status) {
  return status == footplate::nccl_abi::kSystemError ? "unhandled system error" : "remote process exited";
}
const char* ncclGetLastError(Comm) {
  return "the stub says so";
}
}
