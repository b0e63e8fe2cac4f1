#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

#include "runtime/base/progress.h"

namespace footplate {

/// The step that the training thread doesn't begin before it knows the outcome of the open order, and the
/// next step at which anything else is due. docs/architecture.md, "One order, all ranks", tells why no rank
/// can pass the step of an order. All but passes() is guarded by the gate's mutex.
class StepFence {
 public:
  explicit StepFence(Progress& progress) : progress_(progress) {}

  /// Training thread, without the mutex: begins `step`. Whether nothing is due there. One store and one load,
  /// both sequentially consistent.
  bool passes(std::int64_t step) {
    // Pairs with propose(): either this store is seen there, or the fence is seen here.
    progress_.at_step(step);
    return step < interesting_.load(std::memory_order_seq_cst);
  }

  /// Puts the fence at the first step that hasn't begun; that step.
  std::int64_t propose();
  /// The training thread stands at the top of `step`: the fence is there.
  void put_at(std::int64_t step);
  /// The outcome is known, and with it the next step at which anything is due. Both change by one store: a
  /// training thread between two would pass the step of the order.
  void release(std::int64_t next_due);
  /// Whether `step` has to wait for the outcome.
  bool blocks(std::int64_t step) const { return fence_ <= step; }

  /// The first step at which something else than the fence is due.
  void set_next_due(std::int64_t step);

  /// The training thread has waited at a fence.
  void count_stop(std::chrono::nanoseconds waited);
  std::chrono::nanoseconds time_stopped() const { return time_stopped_; }
  std::uint64_t stops() const { return stops_; }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  void store();

  Progress& progress_;
  std::atomic<std::int64_t> interesting_{0};  ///< the smaller of fence_ and next_due_
  std::int64_t fence_ = kNever;
  std::int64_t next_due_ = 0;
  std::chrono::nanoseconds time_stopped_{0};
  std::uint64_t stops_ = 0;
};

}  // namespace footplate
