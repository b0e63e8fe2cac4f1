#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

namespace footplate {

/// One collective operation, from its launch to its end.
struct LedgerEntry {
  using Clock = std::chrono::steady_clock;
  std::uint64_t sequence = 0;  ///< 1, 2, 3, … the same on all ranks
  const char* kind = "";       ///< "all_reduce", …; static storage
  const char* name = "";       ///< what for; static storage
  std::int64_t elements = 0;
  std::int64_t step = 0;
  Clock::time_point enqueued{};
  Clock::time_point started{};
  Clock::time_point finished{};  ///< epoch: not yet
};

/// The last kSize collectives of this rank. Written by whoever launches and by the communication
/// thread, read by the control thread (heartbeats) and, later, by the watchdog.
class Ledger {
 public:
  static constexpr std::size_t kSize = 256;

  std::uint64_t enqueue(const char* kind, const char* name, std::int64_t elements, std::int64_t step);
  void start(std::uint64_t sequence);
  void finish(std::uint64_t sequence);

  /// The oldest that isn't finished, else the newest; sequence 0 if there was none yet.
  LedgerEntry current() const;

 private:
  mutable std::mutex mutex_;
  std::array<LedgerEntry, kSize> ring_{};
  std::uint64_t last_ = 0;
};

}  // namespace footplate
