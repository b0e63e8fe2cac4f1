#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "protocol/settings.h"
#include "runtime/base/clock.h"
#include "runtime/comm/message_channel.h"
#include "runtime/orders/coordinator.h"
#include "runtime/watch/policies.h"
#include "runtime/watch/status_tracker.h"

namespace footplate {

/// Rank 0: what follows where the ranks' states differ, as guard.on_mismatch says: a stop, or an order that
/// has all take the state of the majority. Knows who differs until all have one state again. Control thread.
class StateRepair {
 public:
  using Clock = SteadyClock;
  struct Parts {
    StatusTracker& status;
    Coordinator& coordinator;
    const MessageChannel& channel;
  };

  explicit StateRepair(Parts parts) : parts_(parts) {}

  void follow(const Settings& settings) {
    on_mismatch_ = choice_of<OnMismatch>(settings, "guard.on_mismatch");
  }
  /// A warning of kind state_hash. Acted on with the next tick.
  void found(Warning difference) { differences_.push_back(std::move(difference)); }
  void tick(Clock::time_point now);
  // Every report.
  void note(const OrderReport& report);
  void note(const CallReport& report);
  /// Training goes back to this step: hashes of later ones count again.
  void go_back(std::int64_t step) { repaired_at_ = std::min(repaired_at_, step); }
  /// All ranks have one state again.
  void level();

  /// Ranks that have another state than most.
  const std::vector<int>& odd() const { return odd_; }
  /// `before`: of each rank the number that it had; -1: none.
  void change_world(const std::vector<int>& before);

 private:
  void act_on(const Warning& difference, Clock::time_point now);

  Parts parts_;
  OnMismatch on_mismatch_ = OnMismatch::warn;
  std::vector<Warning> differences_;
  std::vector<int> odd_;
  std::uint64_t order_ = 0;        ///< under way; 0: none
  std::int64_t repaired_at_ = -1;  ///< hashes up to this step are of before the repair
};

}  // namespace footplate
