#pragma once

#include <cstdint>
#include <optional>

#include "protocol/messages/link_messages.h"
#include "runtime/base/clock.h"
#include "runtime/orders/gate_events.h"

namespace footplate {

/// Rank 0: after an event that a rule with `sync = true` is registered for, training waits until the rule has
/// run, at most for the rule's budget. Guarded by the gate's mutex.
class RuleHold {
 public:
  /// Whether that ended the hold: its topic is no longer there.
  bool set_budgets(SyncTopics budgets);
  /// An event of `topic` is about to be published: the id of the hold; 0: no rule waits for it.
  std::uint64_t begin(Topic topic);
  /// Whether that was the hold.
  bool release(std::uint64_t id);

  bool holds() const { return hold_.has_value(); }
  /// While it holds.
  SteadyClock::time_point until() const { return hold_->until; }
  /// The wait is over. Where the rule hasn't released it: a warning, the first time.
  std::optional<Published> end();

 private:
  struct Hold {
    std::uint64_t id = 0;
    Topic topic = Topic::metrics;
    SteadyClock::time_point until;
  };

  SyncTopics budgets_;
  std::optional<Hold> hold_;
  std::uint64_t last_id_ = 0;
  bool said_late_ = false;
};

}  // namespace footplate
