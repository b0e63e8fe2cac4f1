#pragma once

#include <cstddef>
#include <cstdint>

/// The layouts by which NCCL calls its plugins, written down for building without NCCL. Read in
/// src/include/plugin/ of v2.28.9-1 (tuner_v5.h, profiler_v5.h, nccl_tuner.h, nccl_profiler.h,
/// nccl_common.h) and of v2.30.7-1 (tuner_v6.h, profiler_v6.h). NCCL 2.28.9 asks a library for version 5 of
/// both, 2.30 for version 6 first. What nccl.h has of it is compared with it by tests/unit/cuda/abi_test.cpp
/// where that header is there.
namespace footplate::nccl_abi {

/// ncclResult_t.
enum Status : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

/// ncclDebugLogger_t; its level and its flags.
using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

// --- tuner ---

constexpr int kAlgorithms = 7;
constexpr int kProtocols = 3;

/// ncclFunc_t, as far as a tuner is asked.
enum Function : int { kBroadcast = 0, kReduce = 1, kAllGather = 2, kReduceScatter = 3, kAllReduce = 4 };

struct NvlDomains {
  int count, least_ranks, most_ranks;
};

/// ncclTunerPlugin_v5 and _v6. `costs` is declared as a table of rows and is `algorithms` x `protocols`
/// floats in one piece. The tuner's constants aren't used here.
struct Tuner {
  const char* name;
  Status (*init)(void** context, std::uint64_t communicator, std::size_t ranks, std::size_t nodes,
                 Logger logger, NvlDomains* domains, void* constants);
  Status (*collective)(void* context, int function, std::size_t bytes, int operations, float** costs,
                       int algorithms, int protocols, int registered, int* channels);
  Status (*finalize)(void* context);
};
struct TunerV6 {
  Tuner v5;
  Status (*chunk_size)(void* context, int function, std::size_t bytes, int algorithm, int protocol,
                       int channels, std::size_t* chunk_bytes);  ///< null: NCCL's own
};

// --- profiler ---

enum Event : std::uint64_t { kCollective = 1 << 1, kKernelChannel = 1 << 6 };
constexpr int kKernelChannelStop = 22;  ///< state of a kernel channel event

/// What an event begins with, of the union only what is read here.
struct Description {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    struct {
      std::uint64_t sequence;
      const char* function;
      const void* send;
      void* receive;
      std::size_t count;
      int root;
      const char* data_type;
      std::uint8_t channels;
      std::uint8_t warps;
      const char* algorithm;
      const char* protocol;
      void* parent_group;
    } collective;
    struct {
      std::uint8_t channel;
      std::uint64_t timer_ns;  ///< of the device's global clock
    } kernel_channel;
  };
};
union StateArguments {
  struct {
    std::uint64_t timer_ns;
  } kernel_channel;
};

/// ncclProfiler_v5 and _v6: the same functions; version 6 has more kinds of events.
struct Profiler {
  const char* name;
  Status (*init)(void** context, std::uint64_t communicator, int* mask, const char* communicator_name,
                 int nodes, int ranks, int rank, Logger logger);
  Status (*start)(void* context, void** event, Description* description);
  Status (*stop)(void* event);
  Status (*record)(void* event, int state, StateArguments* arguments);
  Status (*finalize)(void* context);
};

}  // namespace footplate::nccl_abi
