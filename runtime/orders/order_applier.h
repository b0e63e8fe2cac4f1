#pragma once

#include <cstdint>
#include <string>

#include "runtime/orders/gate_state.h"

namespace footplate {

/// What the training thread does with an order that is due: changes settings, makes calls, and tells the
/// control thread of each. While the trainer works on it the gate's mutex is free.
class OrderApplier {
 public:
  explicit OrderApplier(const Schema& schema) : schema_(schema) {}

  // Before the first apply().
  void set_steerable(Steerable& steerable) { steerable_ = &steerable; }
  /// Whether a lost rank is survived.
  void set_recoverable(bool recoverable) { recoverable_ = recoverable; }
  /// Orders that let a process in count where they name this start of the run.
  void set_start(std::string start) { start_ = std::move(start); }

  bool recoverable() const { return recoverable_; }
  Steerable& steerable() const { return *steerable_; }

  /// Training thread, at the top of `step`. Throws std::runtime_error where a rank is lost and that isn't
  /// survived.
  void apply(GateState& state, std::int64_t step, const Committed& due) REQUIRES(state.mutex);

 private:
  /// False: a rank was lost meanwhile, and nothing has changed.
  bool change_settings(GateState& state, const Order& order, std::int64_t step, OrderApplied& outcome)
      REQUIRES(state.mutex);
  /// The same.
  bool renew(GateState& state, const Settings& after, Renewal what, std::int64_t step, OrderApplied& outcome)
      REQUIRES(state.mutex);
  void put_back(GateState& state, const Committed& order) REQUIRES(state.mutex);
  void run_calls(GateState& state, std::int64_t step, const Order& order) REQUIRES(state.mutex);
  void run_own(GateState& state, const Order& order, CallMoved& moved, std::int64_t step)
      REQUIRES(state.mutex);
  void run_admit(GateState& state, const Order& order, CallMoved& moved, std::int64_t step)
      REQUIRES(state.mutex);
  void run_foreign(GateState& state, const Order& order, CallMoved& moved, std::int64_t step)
      REQUIRES(state.mutex);
  Result<CallResult> call(const Call& call, std::int64_t step);

  const Schema& schema_;
  Steerable* steerable_ = nullptr;
  bool recoverable_ = false;
  std::string start_;
};

}  // namespace footplate
