#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/orders/gate_state.h"
#include "runtime/orders/order_applier.h"

namespace footplate {

/// The training thread's side of a Gate: stops at the top of a step where anything is due there. The
/// functions are for the training thread where StepGate doesn't say otherwise.
class TrainingSide final : public StepGate {
 public:
  /// `state` outlives this.
  TrainingSide(const Schema& schema, GateState& state) : state_(state), applier_(schema) {}

  /// Before the first enter().
  OrderApplier& applier() { return applier_; }

  Verdict enter(std::int64_t step) override;
  Ending ending() const override;
  const Settings& settings() const override;
  std::uint64_t last_applied() const override;
  std::uint64_t applied() const override;
  Json store() const override;
  Json orders_ahead() const override;
  bool abandon() const override { return state_.abandon.load(std::memory_order_relaxed); }
  std::optional<DeferredCall> defer() override;
  void conclude(const DeferredCall& call, Result<CallResult> outcome) override;  ///< any thread
  void report(StateHash state) override;
  Result<void> meet(const std::string& what, std::chrono::milliseconds at_most) override;
  void pause() override;
  bool lost(Interrupted what, const std::string& tag) override;
  void all_are_level() override;
  std::string interruption() const override;
  void propose(const Order& order) override;
  void publish(EventData data) override;  ///< any thread

 private:
  Verdict enter_slowly(std::int64_t step);
  /// What to do next at the top of `step`; a verdict once it is known. May move the step.
  std::optional<Verdict> act(MutexLock& lock, std::int64_t& step) REQUIRES(state_.mutex);
  void stand_still(MutexLock& lock, Held why, std::int64_t step) REQUIRES(state_.mutex);
  void announce_end(std::int64_t step) REQUIRES(state_.mutex);
  void wait_for_rule(MutexLock& lock) REQUIRES(state_.mutex);
  void rejoin(MutexLock& lock, std::int64_t& step) REQUIRES(state_.mutex);

  GateState& state_;
  OrderApplier applier_;
};

}  // namespace footplate
