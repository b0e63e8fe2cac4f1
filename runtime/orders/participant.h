#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/base/times.h"
#include "runtime/comm/ledger.h"
#include "runtime/comm/message_channel.h"
#include "runtime/comm/watchdog.h"
#include "runtime/orders/gate.h"

namespace footplate {

/// One rank's side of the order protocol (messages.h), on its control thread: says whether this rank
/// can, holds the fence, hands what was agreed to the gate, and tells rank 0 what the gate reports. More than
/// 30 methods: one for each message of the protocol, most of a few lines.
class Participant {
 public:
  using Clock = SteadyClock;
  struct Parts {
    const Schema& schema;
    Gate& gate;
    Steerable& steerable;
    MessageChannel& channel;
    const Progress& progress;
    const Ledger* ledger;  ///< may be null
    std::string host;
    ControlTimes times;
  };

  explicit Participant(Parts parts);

  /// A message of the coordinator.
  void handle(const Json& message);
  /// What the training thread reported. Published events are the caller's business, on rank 0.
  void handle(const GateEvent& event);
  /// Sends a heartbeat where one is due, or the state has changed; whether it did.
  bool tick(Clock::time_point now);
  void beat(Clock::time_point now);  ///< at once
  Clock::time_point next_tick() const { return next_beat_; }
  /// What this rank's watchdog has found.
  void tell(const Watchdog::Finding& finding);
  /// Heartbeats more often than usual, for those who follow.
  void beat_every(std::chrono::milliseconds interval) { interval_ = interval; }
  /// Tells rank 0 that a signal asks this rank to end.
  void ask_to_stop(const std::string& reason, bool resumable);
  void say_goodbye();

  // After a loss (recovery.h).

  /// Tells the new rank 0 where this rank stands.
  void report_recovery_state(const RecoveryState& standing, std::uint32_t generation);
  /// The training thread goes on as `verdict` says; what it has applied of late is confirmed again.
  void rejoin(const Json& verdict, int local_ranks);
  /// What a rank that joins needs to go on as this one: take_over() of it.
  Json hand_over() const;
  void take_over(const Json& handed);
  /// An agreed order as hand_over() has them. Error: as of order_from_json().
  static Json to_json(const Committed& committed);
  Result<Committed> read_committed(const Json& json) const;
  /// The orders of late that this rank knows to be agreed, with their steps.
  const std::deque<Committed>& committed() const { return committed_; }

  /// Whether an outcome is awaited; messages are worth looking for more often then.
  bool awaiting_outcome() const { return open_.has_value() || meeting_; }

 private:
  struct Open {
    std::uint64_t ticket = 0;
    Order order;
    std::uint64_t withdraws = 0;  ///< an order's id; 0: none
  };

  void prepare(const Json& message);
  Result<void> prepared(const Order& order);
  Result<void> can_withdraw(std::uint64_t order) const;
  void fence(const Json& message);
  void commit(const Json& message);
  void abort(const Json& message);
  void cancel(const Json& message);
  void inquire(const Json& message);
  void kill_if_here(const Json& message) const;
  struct Commit {
    std::uint64_t ticket = 0;
    std::uint64_t withdraws = 0;  ///< an order's id; 0: none
    Committed committed;          ///< where it withdraws none
  };
  Result<Order> read_order(const Json& json) const;
  static Json to_json(const Commit& commit);
  Result<Commit> read_commit(const Json& json) const;
  void take_commit(Commit commit);
  /// Ranks of one host beat at the same moments of its clock, rank 0 a part of the interval later: so it
  /// hears them all in one turn, and wakes for none of them alone.
  Clock::time_point beat_after(Clock::time_point now) const;
  std::string state() const;
  void answer(const Json& message) { parts_.channel.send(0, message); }

  Parts parts_;
  std::optional<Fault> refuse_;  ///< FOOTPLATE_FAULT=refuse:…
  std::optional<Open> open_;
  bool meeting_ = false;  ///< the training thread waits for the other ranks
  std::map<std::pair<Collective, std::int64_t>, int> overdue_;  ///< how often, by kind and size
  Clock::time_point next_beat_{};
  bool introduced_ = false;  ///< rank 0 of this world was sent a heartbeat
  std::chrono::milliseconds interval_ = std::chrono::milliseconds::max();
  std::string told_;  ///< the state in the last heartbeat
  // Of late, for a rank 0 that the others' messages haven't reached.
  std::optional<Commit> commit_;          ///< the newest one
  std::deque<Committed> committed_;       ///< oldest first
  std::deque<Json> applied_;              ///< messages, oldest first
  std::uint64_t ticket_ = 0, order_ = 0;  ///< largest ones seen
};

}  // namespace footplate
