#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/mutex.h"
#include "runtime/cuda/plugin_abi.h"

namespace footplate {

/// What collectives of one kind and size were done by, and how long they took.
struct CollectiveRow {
  std::string collective;      ///< "all_reduce"
  std::string algorithm;       ///< "ring"
  std::string protocol;        ///< "ll128"
  int channels = 0;            ///< blocks of the device
  int ranks = 0;               ///< of the communicator
  std::uint64_t at_least = 0;  ///< bytes: the size class is from here to below twice as many
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;     ///< of all together
  std::uint64_t total_ns = 0;  ///< on the device, from the first block's start to the last one's end
  std::uint64_t least_ns = 0;
  std::uint64_t most_ns = 0;

  double mean_us() const;
  /// GB/s: bytes by time, times what the slowest link moves of each byte (nccl-tests, PERFORMANCE.md):
  /// 2 (n-1)/n of an all_reduce, (n-1)/n of an all_gather and a reduce_scatter, else 1 (of a sendrecv, too).
  double bus_gb_per_s() const;
};

/// Puts together what NCCL's profiler events tell: which algorithm, protocol and channels every collective
/// really had, and its time on the device. Costs nothing while it isn't measuring. Any thread; NCCL calls it
/// from those that launch and from its own, so nothing here allocates, waits for anything but a short lock,
/// or fails.
class CollectiveProfile {
 public:
  static constexpr std::size_t kOpen = 1024;  ///< collectives on their way at once; older ones are given up
  static constexpr std::size_t kRows = 256;
  static constexpr int kChannels = 64;

  CollectiveProfile();

  /// NCCL's mask of events, which lives as long as the process, and which it reads at each group.
  void set_mask(int* mask);

  /// Measures the collectives of steps `first` to `first` + `steps` - 1, beginning anew. Training thread.
  void measure(std::int64_t first, std::int64_t steps);
  /// At the top of `step`: switches events on and off. Training thread.
  void at_step(std::int64_t step);
  bool measuring() const { return on_.load(std::memory_order_relaxed); }

  std::vector<CollectiveRow> rows() const;  ///< by collective and size
  /// Collectives whose end was never told (captured in a graph, say, or too many at once), and those that
  /// found no row.
  std::uint64_t unfinished() const;
  std::uint64_t left_out() const;

  // NCCL's events. `event` is a number that says everything; 0: of no interest.
  std::uintptr_t start(const nccl_abi::Description& description, int ranks);
  void stop(std::uintptr_t event);
  void record(std::uintptr_t event, int state, const nccl_abi::StateArguments* arguments);

 private:
  /// A collective on its way.
  struct Open {
    std::uint32_t generation = 0;  ///< 0: free
    bool launched = false;         ///< NCCL has said all that it says of it but its channels' times
    int row = -1;
    int channels = 0;
    std::uint64_t bytes = 0;
    int started = 0;
    int ended = 0;
    std::uint64_t first_ns = 0;
    std::uint64_t last_ns = 0;
  };
  struct Row {
    int function = -1;
    int algorithm = -1;
    int protocol = -1;
    int channels = 0;
    int ranks = 0;
    int size_class = 0;
    std::uint64_t count = 0, bytes = 0, total_ns = 0, least_ns = 0, most_ns = 0;
  };

  std::uintptr_t start_collective(const nccl_abi::Description& description, int ranks);
  std::uintptr_t start_channel(const nccl_abi::Description& description);
  Open* open(std::uintptr_t event) REQUIRES(mutex_);
  int row_for(const Row& key) REQUIRES(mutex_);
  void settle(Open& open) REQUIRES(mutex_);
  void set_events(bool on) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::array<Open, kOpen> open_ GUARDED_BY(mutex_);
  std::array<Row, kRows> rows_ GUARDED_BY(mutex_);
  std::size_t row_count_ GUARDED_BY(mutex_) = 0;
  std::size_t next_ GUARDED_BY(mutex_) = 0;
  std::uint32_t generation_ GUARDED_BY(mutex_) = 0;
  std::uint64_t unfinished_ GUARDED_BY(mutex_) = 0, left_out_ GUARDED_BY(mutex_) = 0;
  std::int64_t first_step_ = 0, end_step_ = 0;  ///< training thread
  int* mask_ GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> on_ = false;
};

/// Communicators that NCCL makes from here on tell `profile`, which outlives them; null: nobody. The library
/// which this is linked into exports ncclProfiler_v5 and ncclProfiler_v6 (NCCL_PROFILER_PLUGIN names it).
void bind_profiler(CollectiveProfile* profile);

}  // namespace footplate
