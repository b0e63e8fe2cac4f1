#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "protocol/result.h"
#include "runtime/cuda/plugin_abi.h"

namespace footplate {

/// NCCL's own types and calls, as far as they are used here, written down for building without its header.
/// Read in nccl.h of 2.28.9, which tests/unit/cuda/abi_test.cpp compares them with where it is there.
namespace nccl_abi {

struct Communicator;   ///< ncclComm
using Stream = void*;  ///< cudaStream_t

struct UniqueId {
  char bytes[128];
};

constexpr int kUnset = std::numeric_limits<int>::min();  ///< NCCL_CONFIG_UNDEF_INT
constexpr unsigned int kConfigMagic = 0xcafebeef;
constexpr int kOldest = 22809;  ///< 2.28.9: what the table below is of
constexpr int kFirstWithCollectiveConfig = 23100;

/// ncclConfig_t as of 2.28; newer libraries accept it by its size and version.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned int magic = kConfigMagic;
  unsigned int version = kOldest;
  int blocking = kUnset;
  int cga_cluster_size = kUnset;
  int min_ctas = kUnset;
  int max_ctas = kUnset;
  const char* net_name = nullptr;
  int split_share = kUnset;
  int traffic_class = kUnset;
  const char* name = nullptr;
  int collnet = kUnset;
  int cta_policy = kUnset;
  int shrink_share = kUnset;
  int nvls_ctas = kUnset;
  int channels_per_net_peer = kUnset;
  int nvlink_centric = kUnset;
};

/// ncclCollConfig_t as of 2.31, the first: how one collective is done, for ncclAllReduceConfig. It grows at
/// its end only, and is accepted by its size and version.
struct CollectiveConfig {
  std::size_t size = sizeof(CollectiveConfig);
  unsigned int magic = kConfigMagic;
  unsigned int version = kFirstWithCollectiveConfig;
  void* extensions = nullptr;
  int min_ctas = kUnset;
  int max_ctas = kUnset;
  int nvls_ctas = kUnset;
  int cga_cluster_size = kUnset;
  const char* selection = nullptr;  ///< of algorithms and protocols; null: NCCL's choice
  int force_selection = 1;          ///< 0: where there is none of these, NCCL's choice instead of an error
  int cta_policy = kUnset;
  std::uint64_t profiler_tag = 0;
};

enum DataTypeNumber : int { kUint8 = 1, kInt64 = 4, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9 };
enum OperatorNumber : int { kSum = 0, kMax = 2, kMin = 3 };

}  // namespace nccl_abi

/// NCCL as a table of its functions: the library that LibTorch is linked with (exactly one may be in a
/// process), or what a test puts in its place. A plain value; the library stays loaded as long as the
/// process.
struct NcclLibrary {
  using Status = nccl_abi::Status;
  using Comm = nccl_abi::Communicator*;

  Status (*get_version)(int* version) = nullptr;
  Status (*get_unique_id)(nccl_abi::UniqueId* id) = nullptr;
  Status (*init_rank_config)(Comm* comm, int ranks, nccl_abi::UniqueId id, int rank,
                             nccl_abi::Config* config) = nullptr;
  Status (*finalize)(Comm comm) = nullptr;
  Status (*destroy)(Comm comm) = nullptr;
  Status (*abort)(Comm comm) = nullptr;
  Status (*get_async_error)(Comm comm, Status* error) = nullptr;
  const char* (*get_error_string)(Status status) = nullptr;
  const char* (*get_last_error)(Comm comm) = nullptr;
  Status (*group_start)() = nullptr;
  Status (*group_end)() = nullptr;
  Status (*all_reduce)(const void* send, void* receive, std::size_t count, int type, int op, Comm comm,
                       nccl_abi::Stream stream) = nullptr;
  Status (*broadcast)(const void* send, void* receive, std::size_t count, int type, int root, Comm comm,
                      nccl_abi::Stream stream) = nullptr;
  Status (*all_gather)(const void* send, void* receive, std::size_t count, int type, Comm comm,
                       nccl_abi::Stream stream) = nullptr;
  Status (*reduce_scatter)(const void* send, void* receive, std::size_t received, int type, int op, Comm comm,
                           nccl_abi::Stream stream) = nullptr;
  Status (*send)(const void* send, std::size_t count, int type, int to, Comm comm,
                 nccl_abi::Stream stream) = nullptr;
  Status (*receive)(void* receive, std::size_t count, int type, int from, Comm comm,
                    nccl_abi::Stream stream) = nullptr;
  /// Null before 2.31.
  Status (*all_reduce_with_config)(const void* send, void* receive, std::size_t count, int type, int op,
                                   Comm comm, nccl_abi::Stream stream,
                                   const nccl_abi::CollectiveConfig* config) = nullptr;
  void (*reset_debug)() = nullptr;  ///< null where the library hasn't got it: it is deprecated
  int version = 0;                  ///< 22809 is 2.28.9

  /// Opens `path` ("libnccl.so.2"). Errors (usage): it isn't there, lacks a function, or is older than
  /// kOldest; with what to do.
  static Result<NcclLibrary> open(const std::filesystem::path& path);
};

/// "2.28.9".
std::string nccl_version_text(int version);

}  // namespace footplate
