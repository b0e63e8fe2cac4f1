#include "runtime/cuda/nccl_library.h"

#include <dlfcn.h>

namespace footplate {
namespace {

/// Finds functions one after the other and remembers the first that isn't there.
class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}

  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  template <class Function>
  void find_if_there(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace

Result<NcclLibrary> NcclLibrary::open(const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorKind::usage, "NCCL can't be used: " + path.string() + " " + why +
                                      "; scripts/deps --cuda installs the one that belongs to LibTorch");
  };
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return refuse(std::string("can't be opened (") + (why != nullptr ? why : "no reason given") + ")");
  }
  Finder finder(handle);
  NcclLibrary library;
  finder.find(library.get_version, "ncclGetVersion");
  finder.find(library.get_unique_id, "ncclGetUniqueId");
  finder.find(library.init_rank_config, "ncclCommInitRankConfig");
  finder.find(library.finalize, "ncclCommFinalize");
  finder.find(library.destroy, "ncclCommDestroy");
  finder.find(library.abort, "ncclCommAbort");
  finder.find(library.get_async_error, "ncclCommGetAsyncError");
  finder.find(library.get_error_string, "ncclGetErrorString");
  finder.find(library.get_last_error, "ncclGetLastError");
  finder.find(library.group_start, "ncclGroupStart");
  finder.find(library.group_end, "ncclGroupEnd");
  finder.find(library.all_reduce, "ncclAllReduce");
  finder.find(library.broadcast, "ncclBroadcast");
  finder.find(library.all_gather, "ncclAllGather");
  finder.find(library.reduce_scatter, "ncclReduceScatter");
  finder.find(library.send, "ncclSend");
  finder.find(library.receive, "ncclRecv");
  finder.find_if_there(library.reset_debug, "ncclResetDebugInit");
  finder.find_if_there(library.all_reduce_with_config, "ncclAllReduceConfig");
  if (!finder.missing().empty()) return refuse("has no " + finder.missing());
  if (library.get_version(&library.version) != nccl_abi::kSuccess) return refuse("doesn't tell its version");
  if (library.version < nccl_abi::kOldest)
    return refuse("is version " + nccl_version_text(library.version) + ", older than " +
                  nccl_version_text(nccl_abi::kOldest));
  if (library.version < nccl_abi::kFirstWithCollectiveConfig) library.all_reduce_with_config = nullptr;
  return library;
}

std::string nccl_version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace footplate
