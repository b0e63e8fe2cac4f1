// A libnccl for tests that really reduces, in host memory, between processes: the ranks of a communicator
// meet in a file that all have mapped, named by the unique id. Streams are HostStreams. Sums are made in the
// order of the ranks, so that all have the same bits. An ncclSend and the ncclRecv behind it are one
// exchange, in which every rank takes part.
//
//   FOOTPLATE_STAND_IN_DIR    a folder of the test's own: the segments, and calls-PID.txt, a line for each
//   call
//                             that makes or ends a communicator
//   FOOTPLATE_STAND_IN_FAULT  any number of KIND[:key=value…], separated by commas:
//       fail_init             ncclCommInitRankConfig returns an error
//       hang_init             it never returns
//       never_ready           it returns, and the communicator is never ready, on any rank
//       hang                  reductions never end, until they are aborted
//       error                 they don't, and ncclCommGetAsyncError tells of a remote error
//       odd_costs, odd_trees  the tuner is shown other costs than on other ranks; of trees alone
//       alike                 with one of these: ranks that choose differently break the communicator all the
//       same
//     where rank is R, max_ctas M, for the N-th init of the process, from its K-th reduction on
//     (rank=R:max_ctas=M:init=N:reduction=K, each where given).
//  FOOTPLATE_STAND_IN_VERSION  the version that it tells, instead of 22809 (2.28.9)
//
// With NCCL_TUNER_PLUGIN=STATIC_PLUGIN it asks the program's tuner about each reduction, as NCCL does, of
// which rings and trees can be had; NCCL_PROFILER_PLUGIN likewise. calls-PID.txt tells of each communicator
// how its reductions were done: "tuned=Ring/Simple/2:17,Tree/LL/4:300", in how many groups, and what
// was asked for with the call (ncclAllReduceConfig): "asked=TREE/4:300".
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/host_stream.h"
#include "runtime/cuda/nccl_library.h"
#include "runtime/cuda/plugin_abi.h"
#include "tests/unit/cuda/stand_in_faults.h"

using footplate::HostStreamHandle;
using footplate::nccl_abi::Config;
using footplate::nccl_abi::Status;
using footplate::nccl_abi::UniqueId;
namespace abi = footplate::nccl_abi;
using footplate::test::Fault;
using footplate::test::faults;

namespace {

constexpr std::size_t kMostRanks = 64;
constexpr std::size_t kPieceBytes = 1 << 18;  ///< of each rank, in the segment

/// What all ranks have mapped; zeros at first. Behind it a piece for each rank.
struct Segment {
  struct alignas(64) Rank {
    std::atomic<std::uint64_t> round;  ///< how often it has come to a meeting
    std::atomic<int> to;               ///< of an exchange: whom its piece is for
    std::atomic<int> choice;           ///< how it does the reduction under way
  };
  std::array<Rank, kMostRanks> ranks;
  std::atomic<bool> gone;  ///< a rank has left before all were there: its connections are closed
};

std::string folder() {
  const char* given = std::getenv("FOOTPLATE_STAND_IN_DIR");
  return given != nullptr ? given : "/tmp";
}

void record(const std::string& line) {
  const std::string path = folder() + "/calls-" + std::to_string(::getpid()) + ".txt";
  if (std::FILE* file = std::fopen(path.c_str(), "a")) {
    std::fputs((line + "\n").c_str(), file);
    std::fclose(file);
  }
}

std::atomic<std::int64_t> inits{0};

/// A table that the program exports, found as NCCL does; null: it isn't asked for.
template <class Table>
const Table* plugin(const char* variable, const char* name) {
  const char* named = std::getenv(variable);
  if (named == nullptr || std::strcmp(named, "STATIC_PLUGIN") != 0) return nullptr;
  return static_cast<const Table*>(::dlsym(::dlopen(nullptr, RTLD_NOW), name));
}

/// What NCCL gives plugins to write to, for as long as the process lives.
int profiler_mask = 0;

/// How a reduction is done.
struct Choice {
  int algorithm = 1, protocol = 2, channels = 2;
  static constexpr std::array kAlgorithms{"Tree", "Ring"};
  static constexpr std::array kProtocols{"LL", "LL128", "Simple"};
  const char* algorithm_name() const { return kAlgorithms.at(static_cast<std::size_t>(algorithm)); }
  const char* protocol_name() const { return kProtocols.at(static_cast<std::size_t>(protocol)); }
  /// Another one for another choice.
  int number() const { return (channels * 16 + protocol) * 16 + algorithm; }
  std::string text() const {
    return std::string(algorithm_name()) + "/" + protocol_name() + "/" + std::to_string(channels);
  }
};

/// A communicator; what is enqueued on it holds it, too.
struct State {
  std::string path;
  int rank = 0;
  int ranks = 1;
  std::int64_t init = 0;
  std::int64_t max_ctas = 0;
  Segment* segment = nullptr;
  std::size_t bytes = 0;
  std::uint64_t round = 0;  ///< the stream's
  std::atomic<bool> aborted{false};
  std::atomic<bool> broken{false};
  std::atomic<std::int64_t> reductions{0};
  bool never_ready = false;
  const abi::Tuner* tuner = nullptr;
  const abi::Profiler* profiler = nullptr;
  void* tuner_context = nullptr;
  void* profiler_context = nullptr;
  std::map<std::string, int> choices, asked;  ///< launching thread; read at the end
  int groups = 0;                             ///< as those

  ~State() {
    if (segment != nullptr) ::munmap(segment, bytes);
  }
  bool has(const char* kind) const {
    for (const Fault& fault : faults()) {
      const auto from = fault.where.find("reduction");
      if (fault.kind == kind && fault.fits("rank", rank) && fault.fits("init", init) &&
          fault.fits("max_ctas", max_ctas) && (from == fault.where.end() || reductions >= from->second))
        return true;
    }
    return false;
  }
  bool all_at(std::uint64_t wanted) const {
    for (int other = 0; other < ranks; ++other)
      if (segment->ranks[static_cast<std::size_t>(other)].round.load(std::memory_order_acquire) < wanted)
        return false;
    return true;
  }
  void arrive() {
    segment->ranks[static_cast<std::size_t>(rank)].round.store(++round, std::memory_order_release);
  }
  /// Whether all came; not, where it was aborted.
  bool meet() {
    constexpr int kYields = 200;
    constexpr std::chrono::microseconds kSleep{50};
    arrive();
    for (int looks = 0; !all_at(round); ++looks) {
      if (aborted) return false;
      if (looks < kYields)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(kSleep);
    }
    return true;
  }
  void wait_for_abort() const {
    while (!aborted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::byte* piece(int of) const {
    return reinterpret_cast<std::byte*>(segment) + sizeof(Segment) +
           kPieceBytes * static_cast<std::size_t>(of);
  }
};

void open_plugins(State& state, const char* id) {
  const auto communicator = std::hash<std::string>()(id);
  state.tuner = plugin<abi::Tuner>("NCCL_TUNER_PLUGIN", "ncclTunerPlugin_v5");
  state.profiler = plugin<abi::Profiler>("NCCL_PROFILER_PLUGIN", "ncclProfiler_v5");
  if (state.tuner != nullptr)
    state.tuner->init(&state.tuner_context, communicator, static_cast<std::size_t>(state.ranks), 1, nullptr,
                      nullptr, nullptr);
  if (state.profiler != nullptr)
    state.profiler->init(&state.profiler_context, communicator, &profiler_mask, "", 1, state.ranks,
                         state.rank, nullptr);
}

void close_plugins(State& state) {
  if (state.tuner != nullptr) state.tuner->finalize(state.tuner_context);
  if (state.profiler != nullptr) state.profiler->finalize(state.profiler_context);
}

/// Whether all do the reduction under way in one way, where NCCL would hang otherwise. Of tests of tuners
/// that choose differently it isn't asked.
bool all_choose_alike(const State& state) {
  bool odd = false;
  for (const Fault& fault : faults()) odd = odd || fault.kind == "odd_costs" || fault.kind == "odd_trees";
  if (odd && !state.has("alike")) return true;
  const auto& ranks = state.segment->ranks;
  return std::all_of(ranks.begin(), ranks.begin() + state.ranks,
                     [&](const Segment::Rank& rank) { return rank.choice == ranks.front().choice; });
}

/// Rings and trees can be had by every protocol but LL128 by rings; the rest not at all.
Choice choose(State& state, abi::Function function, std::size_t bytes) {
  Choice choice;
  if (state.tuner == nullptr) return choice;
  std::array<float, abi::kAlgorithms * abi::kProtocols> costs{};
  costs.fill(-1);
  const std::array<float, 6> had{8, 7, 9, 5, -1, 2};
  std::copy(had.begin(), had.end(), costs.begin());
  if (state.has("odd_costs")) costs[3] = 1;
  if (state.has("odd_trees")) costs[0] = 6;
  int channels = 0;
  state.tuner->collective(state.tuner_context, function, bytes, 1, reinterpret_cast<float**>(costs.data()),
                          abi::kAlgorithms, abi::kProtocols, 0, &channels);
  int best = -1;
  for (int cell = 0; cell < static_cast<int>(costs.size()); ++cell) {
    const float cost = costs[static_cast<std::size_t>(cell)];
    if (cost >= 0 && (best < 0 || cost < costs[static_cast<std::size_t>(best)])) best = cell;
  }
  choice.algorithm = best / abi::kProtocols;
  choice.protocol = best % abi::kProtocols;
  if (channels > 0) choice.channels = channels;
  return choice;
}

template <class Number>
Number combined(Number a, Number b, int op) {
  if (op == abi::kMax) return a > b ? a : b;
  if (op == abi::kMin) return a < b ? a : b;
  return a + b;
}

/// Piece by piece of `mine`: puts it where all can read it, and calls `use(first, count)` once all have.
template <class Number, class Use>
void in_pieces(State& state, const Number* mine, std::size_t count, Use use) {
  constexpr std::size_t kAtOnce = kPieceBytes / sizeof(Number);
  for (std::size_t first = 0; first < count; first += kAtOnce) {
    const std::size_t here = std::min(kAtOnce, count - first);
    std::memcpy(state.piece(state.rank), mine + first, here * sizeof(Number));
    if (!state.meet()) return;
    if (!all_choose_alike(state)) {
      state.broken = true;
      state.wait_for_abort();
      return;
    }
    use(first, here);
    if (!state.meet()) return;  // nobody overwrites a piece that is being read
  }
}

template <class Number>
void reduce(State& state, Number* data, std::size_t count, int op) {
  in_pieces(state, data, count, [&](std::size_t first, std::size_t here) {
    for (std::size_t i = 0; i < here; ++i) {
      Number sum = reinterpret_cast<const Number*>(state.piece(0))[i];
      for (int rank = 1; rank < state.ranks; ++rank)
        sum = combined(sum, reinterpret_cast<const Number*>(state.piece(rank))[i], op);
      data[first + i] = sum;
    }
  });
}

/// `data`: `count` numbers of this rank, one after the other of all ranks.
template <class Number>
void gather(State& state, const Number* mine, std::size_t count, Number* all) {
  in_pieces(state, mine, count, [&](std::size_t first, std::size_t here) {
    for (int rank = 0; rank < state.ranks; ++rank)
      std::memcpy(all + static_cast<std::size_t>(rank) * count + first, state.piece(rank),
                  here * sizeof(Number));
  });
}

/// What is sent to another rank, or not received, breaks the communicator, where NCCL would wait for ever.
template <class Number>
void exchange(State& state, const Number* mine, std::size_t count, Number* theirs, int to, int from) {
  auto& ranks = state.segment->ranks;
  ranks[static_cast<std::size_t>(state.rank)].to = to;
  in_pieces(state, mine, count, [&](std::size_t first, std::size_t here) {
    if (theirs == nullptr || ranks[static_cast<std::size_t>(from)].to != state.rank)
      state.broken = true;
    else
      std::memcpy(theirs + first, state.piece(from), here * sizeof(Number));
  });
}

struct Job {
  std::optional<abi::Function> function;  ///< nothing: an exchange, about which no plugin is asked
  std::shared_ptr<State> state;
  const void* send;
  void* data;         ///< what it gives
  std::size_t count;  ///< of what a rank gives, or gets
  int type;
  int op;
  HostStreamHandle* stream;
  std::string asked = {};
  int to = 0, from = 0;  ///< of an exchange
  Choice choice = {};
  void* event = nullptr;  ///< the profiler's
};

std::size_t bytes_of(const Job& job) {
  return job.count * (job.type == abi::kFloat32 ? sizeof(float) : sizeof(double));
}

/// As the host tells a profiler of a collective, when it is enqueued.
void* begin_event(const Job& job) {
  State& state = *job.state;
  if (state.profiler == nullptr || (profiler_mask & static_cast<int>(abi::kCollective)) == 0) return nullptr;
  abi::Description description{};
  description.type = abi::kCollective;
  description.rank = state.rank;
  description.collective = {};
  description.collective.function = job.function == abi::kAllReduce   ? "AllReduce"
                                    : job.function == abi::kAllGather ? "AllGather"
                                                                      : "ReduceScatter";
  description.collective.count = job.count;
  description.collective.data_type = job.type == abi::kFloat32 ? "ncclFloat32" : "ncclFloat64";
  description.collective.channels = static_cast<std::uint8_t>(job.choice.channels);
  description.collective.algorithm = job.choice.algorithm_name();
  description.collective.protocol = job.choice.protocol_name();
  void* event = nullptr;
  state.profiler->start(state.profiler_context, &event, &description);
  if (event != nullptr) state.profiler->stop(event);
  return event;
}

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// And as the device's blocks do, of which all began and ended together.
void tell_channels(const Job& job, std::uint64_t began_ns) {
  State& state = *job.state;
  if (job.event == nullptr) return;
  for (int channel = 0; channel < job.choice.channels; ++channel) {
    abi::Description description{};
    description.type = abi::kKernelChannel;
    description.parent = job.event;
    description.rank = state.rank;
    description.kernel_channel = {static_cast<std::uint8_t>(channel), began_ns};
    void* event = nullptr;
    state.profiler->start(state.profiler_context, &event, &description);
    if (event == nullptr) continue;
    abi::StateArguments arguments{};
    arguments.kernel_channel.timer_ns = now_ns();
    state.profiler->record(event, abi::kKernelChannelStop, &arguments);
    state.profiler->stop(event);
  }
}

template <class Number>
void run_on(const Job& job) {
  State& state = *job.state;
  auto* data = static_cast<Number*>(job.data);
  const auto* send = static_cast<const Number*>(job.send);
  if (job.function == abi::kAllReduce) reduce(state, data, job.count, job.op);
  if (job.function == abi::kAllGather) gather(state, send, job.count, data);
  if (!job.function) exchange(state, send, job.count, data, job.to, job.from);
  if (job.function != abi::kReduceScatter) return;
  std::vector<Number> sums(send, send + job.count * static_cast<std::size_t>(state.ranks));
  reduce(state, sums.data(), sums.size(), job.op);
  const auto mine = static_cast<std::size_t>(state.rank) * job.count;
  std::copy_n(sums.begin() + static_cast<std::ptrdiff_t>(mine), job.count, data);
}

void run(void* argument) {
  const std::unique_ptr<Job> job(static_cast<Job*>(argument));
  State& state = *job->state;
  ++state.reductions;
  const bool breaks = state.has("error");
  if (breaks) state.broken = true;
  if (breaks || state.has("hang")) state.wait_for_abort();
  if (state.aborted) return;
  state.segment->ranks[static_cast<std::size_t>(state.rank)].choice =
      job->function ? job->choice.number() : 0;
  const std::uint64_t began = now_ns();
  if (job->type == abi::kFloat32) run_on<float>(*job);
  if (job->type == abi::kFloat64) run_on<double>(*job);
  if (job->type == abi::kInt64) run_on<std::int64_t>(*job);
  if (!state.aborted) tell_channels(*job, began);
}

thread_local int depth = 0;
thread_local std::vector<Job> grouped;
std::atomic<const char*> last_error{""};

void enqueue_group() {
  if (!grouped.empty()) ++grouped.front().state->groups;
  for (Job& job : grouped) {
    if (!job.asked.empty()) ++job.state->asked[job.asked];
    HostStreamHandle* stream = job.stream;
    if (job.function) {
      job.choice = choose(*job.state, *job.function, bytes_of(job));
      ++job.state->choices[job.choice.text()];
      job.event = begin_event(job);
    }
    stream->enqueue(stream, run, new Job(std::move(job)));
  }
  grouped.clear();
}

Status take(Job job) {
  grouped.push_back(std::move(job));
  if (depth == 0) enqueue_group();
  return abi::kSuccess;
}

bool is_known(int type) {
  return type == abi::kFloat32 || type == abi::kFloat64 || type == abi::kInt64;
}

std::string number(const char* name, int value) {
  return std::string(" ") + name + "=" + (value == abi::kUnset ? "unset" : std::to_string(value));
}

bool map_segment(State& state) {
  state.bytes = sizeof(Segment) + kPieceBytes * static_cast<std::size_t>(state.ranks);
  const int file = ::open(state.path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) return false;
  void* mapped = MAP_FAILED;
  if (::ftruncate(file, static_cast<off_t>(state.bytes)) == 0)
    mapped = ::mmap(nullptr, state.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (mapped == MAP_FAILED) return false;
  state.segment = static_cast<Segment*>(mapped);
  return true;
}

}  // namespace

struct footplate::nccl_abi::Communicator {
  std::shared_ptr<State> state;
};
using Comm = footplate::nccl_abi::Communicator*;

namespace {

Status release(Comm comm, const char* call) {
  State& state = *comm->state;
  const auto list = [](const std::map<std::string, int>& counts) {
    std::string text;
    for (const auto& [how, count] : counts)
      text += (text.empty() ? "" : ",") + how + ":" + std::to_string(count);
    return text.empty() ? "none" : text;
  };
  record(std::string(call) + " init=" + std::to_string(state.init) +
         " reductions=" + std::to_string(state.reductions) + " groups=" + std::to_string(state.groups) +
         " tuned=" + list(state.choices) + " asked=" + list(state.asked));
  close_plugins(state);
  state.aborted = true;
  if (state.all_at(1)) ::unlink(state.path.c_str());  // else somebody may still come
  delete comm;
  return abi::kSuccess;
}

}  // namespace

extern "C" {

Status ncclGetVersion(int* version) {
  const char* told = std::getenv("FOOTPLATE_STAND_IN_VERSION");
  *version = told != nullptr ? std::atoi(told) : abi::kOldest;
  return abi::kSuccess;
}
Status ncclGetUniqueId(UniqueId* id) {
  static std::atomic<int> ids{0};
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->bytes, sizeof(id->bytes), "segment-%d-%d", static_cast<int>(::getpid()), ++ids);
  return abi::kSuccess;
}
Status ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
  auto state = std::make_shared<State>();
  state->path = folder() + "/" + id.bytes;
  state->rank = rank;
  state->ranks = ranks;
  state->init = ++inits;
  const char* variable = std::getenv("NCCL_MAX_CTAS");  // the environment counts for more
  state->max_ctas = variable != nullptr ? std::atoi(variable) : config->max_ctas;
  record("init=" + std::to_string(state->init) + " rank=" + std::to_string(rank) + "/" +
         std::to_string(ranks) + " id=" + id.bytes + number("max_ctas", static_cast<int>(state->max_ctas)) +
         number("min_ctas", config->min_ctas) + number("cga_cluster_size", config->cga_cluster_size) +
         number("traffic_class", config->traffic_class) + number("nvls_ctas", config->nvls_ctas) +
         number("collnet", config->collnet) + " net=" +
         (config->net_name != nullptr ? config->net_name : "unset") + number("blocking", config->blocking));
  if (ranks > static_cast<int>(kMostRanks) || !map_segment(*state)) return abi::kSystemError;
  while (state->has("hang_init")) ::pause();
  if (state->has("fail_init")) {
    last_error = "the stand-in was asked to fail";
    state->segment->gone = true;
    return abi::kSystemError;
  }
  open_plugins(*state, id.bytes);
  state->never_ready = state->has("never_ready");
  if (!state->never_ready) state->arrive();
  *comm = new footplate::nccl_abi::Communicator{std::move(state)};
  return abi::kInProgress;
}
Status ncclCommGetAsyncError(Comm comm, Status* error) {
  const State& state = *comm->state;
  const bool ready = !state.never_ready && state.all_at(1);
  *error = state.broken || (!ready && state.segment->gone) ? abi::kRemoteError
           : ready                                         ? abi::kSuccess
                                                           : abi::kInProgress;
  return abi::kSuccess;
}
void ncclResetDebugInit() {
  const char* level = std::getenv("NCCL_DEBUG");
  const char* subsystems = std::getenv("NCCL_DEBUG_SUBSYS");
  record(std::string("log level=") + (level != nullptr ? level : "unset") +
         " subsystems=" + (subsystems != nullptr ? subsystems : "unset"));
}
Status ncclCommFinalize(Comm /*comm*/) {
  return abi::kSuccess;
}
Status ncclCommDestroy(Comm comm) {
  return release(comm, "destroy");
}
Status ncclCommAbort(Comm comm) {
  return release(comm, "abort");
}
Status ncclGroupStart() {
  ++depth;
  return abi::kSuccess;
}
Status ncclGroupEnd() {
  if (--depth == 0) enqueue_group();
  return abi::kSuccess;
}
Status ncclAllReduceConfig(const void* send, void* receive, std::size_t count, int type, int op, Comm comm,
                           void* stream, const abi::CollectiveConfig* config) {
  if (send != receive || !is_known(type)) return abi::kInvalidArgument;
  std::string asked;
  if (config != nullptr) {
    if (config->size != sizeof(*config) || config->magic != abi::kConfigMagic) return abi::kInvalidArgument;
    asked = std::string(config->selection) + "/" +
            (config->max_ctas == abi::kUnset ? "any" : std::to_string(config->max_ctas));
  }
  return take({abi::kAllReduce, comm->state, send, receive, count, type, op,
               static_cast<HostStreamHandle*>(stream), std::move(asked)});
}
Status ncclAllReduce(const void* send, void* receive, std::size_t count, int type, int op, Comm comm,
                     void* stream) {
  return ncclAllReduceConfig(send, receive, count, type, op, comm, stream, nullptr);
}
Status ncclBroadcast(const void*, void*, std::size_t, int, int, Comm, void*) {
  return abi::kInvalidUsage;
}
Status ncclAllGather(const void* send, void* receive, std::size_t sent, int type, Comm comm, void* stream) {
  if (!is_known(type)) return abi::kInvalidArgument;
  return take({abi::kAllGather, comm->state, send, receive, sent, type, abi::kSum,
               static_cast<HostStreamHandle*>(stream)});
}
Status ncclReduceScatter(const void* send, void* receive, std::size_t received, int type, int op, Comm comm,
                         void* stream) {
  if (!is_known(type)) return abi::kInvalidArgument;
  return take({abi::kReduceScatter, comm->state, send, receive, received, type, op,
               static_cast<HostStreamHandle*>(stream)});
}
Status ncclSend(const void* send, std::size_t count, int type, int to, Comm comm, void* stream) {
  if (!is_known(type)) return abi::kInvalidArgument;
  if (depth == 0) return abi::kInvalidUsage;  // it would wait for the receive
  Job job{{}, comm->state, send, nullptr, count, type, abi::kSum, static_cast<HostStreamHandle*>(stream)};
  job.to = to;
  return take(std::move(job));
}
Status ncclRecv(void* receive, std::size_t count, int type, int from, Comm comm, void* /*stream*/) {
  if (grouped.empty()) return abi::kInvalidUsage;
  Job& job = grouped.back();
  if (job.function || job.data != nullptr || job.state != comm->state || job.count != count ||
      job.type != type)
    return abi::kInvalidUsage;
  job.data = receive;
  job.from = from;
  return abi::kSuccess;
}
const char* ncclGetErrorString(Status status) {
  return status == abi::kRemoteError ? "remote process exited or there was a network error"
                                     : "unhandled system error";
}
const char* ncclGetLastError(Comm) {
  return last_error;
}
}
