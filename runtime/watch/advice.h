#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "protocol/messages/event.h"
#include "protocol/messages/link_messages.h"
#include "protocol/messages/reports.h"
#include "protocol/order.h"
#include "protocol/schema.h"
#include "runtime/base/clock.h"
#include "runtime/comm/ledger.h"
#include "runtime/watch/conclusions.h"
#include "runtime/watch/inquiry.h"
#include "runtime/watch/late_collectives.h"
#include "runtime/watch/policies.h"
#include "runtime/watch/status_tracker.h"

namespace footplate {

/// Rank 0: what collectives that were late give reason to change (conclusions.h), and comm.auto with it:
/// "advise" says so once, "apply" orders it. A setting's evidence counts from its last change on. Nothing is
/// concluded while a collective is past its deadline, while a rank is silent, or once ranks have called
/// different collectives: no setting helps there. A state machine as Coordinator is; control thread.
class Advice {
 public:
  using Clock = SteadyClock;
  struct Parts {
    const Schema& schema;
    const StatusTracker& status;
    const Ledger* ledger = nullptr;    ///< rank 0's, for what smaller operations take; may be null
    int world_size = 1;                ///< at first
    std::uint64_t first_order_id = 1;  ///< of this start; earlier starts have given the smaller ones
    /// Gives an order in the run's own name. Its number; 0: it isn't taken now.
    std::function<std::uint64_t(Order order)> order;
    /// Of kind `advice`.
    std::function<void(Warning)> warn;
  };

  explicit Advice(Parts parts) : parts_(std::move(parts)), late_(parts_.world_size) {}

  /// All settings at first, then those that have been set.
  void follow(const SettingsUpdate& changed);
  /// Ranks were lost, or have joined. What was seen so far says nothing of those of now; what people and
  /// footplate have set stays what it was.
  void world_changed(int world_size);
  void handle(int source, const message::Overdue& overdue, Clock::time_point now);
  /// What Inquiry has found out about a collective.
  void found(CollectiveVerdict verdict, std::uint64_t sequence, const std::vector<int>& ranks);
  /// Concludes from what came since the last tick.
  void tick(Clock::time_point now);

  /// Those that stand.
  std::vector<SettingProposal> proposals() const;

 private:
  struct Proposal {
    Conclusion conclusion;
    bool told = false;
  };
  /// A setting that can be proposed.
  struct Knob {
    double now = 0;
    std::optional<double> given;      ///< the last that somebody else has set
    bool own = false;                 ///< `now` was ordered by footplate
    bool hands_off = false;           ///< somebody has put back what footplate set: only advice from here on
    std::deque<LateCollective> late;  ///< of a deadline: what went past it, oldest first
    std::optional<Proposal> proposal;
    Clock::time_point not_before{};  ///< of the next own order
  };

  void follow_mode(AdviceMode mode);
  void set(const std::string& name, double value, const std::string& source);
  bool is_own(const std::string& source) const;
  void forget_all();
  void remember(LateCollective late, Clock::time_point now);
  std::optional<Conclusion> conclude(const std::string& name, const Knob& knob) const;
  void act(const std::string& name, Knob& knob, Clock::time_point now);
  std::optional<Value> within_reach(const std::string& name, const Knob& knob) const;
  void order(const std::string& name, Knob& knob, const Value& value, Clock::time_point now);
  void advise(const std::string& name, Knob& knob);
  std::string advice_text(const std::string& name, const Knob& knob) const;

  Parts parts_;
  LateCollectives late_;
  AdviceMode mode_ = AdviceMode::off;
  std::map<std::string, Knob> knobs_;
  std::set<std::uint64_t> own_orders_;
  bool different_ = false;  ///< the ranks have called different collectives
  bool news_ = false;       ///< to be concluded from
};

}  // namespace footplate
