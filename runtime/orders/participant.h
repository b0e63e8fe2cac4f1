#pragma once

#include <chrono>
#include <deque>
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
#include "runtime/watch/messages.h"
#include "runtime/watch/rank_queries.h"

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
    const Ledger* ledger;                 ///< may be null
    std::filesystem::path run_directory;  ///< may be empty
    std::string host;
    ControlTimes times;
  };

  explicit Participant(Parts parts);

  /// A message of the coordinator. Those about a loss are RankRecovery's.
  void handle(const message::ToRanks& message);
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
  void rejoin(const message::Rejoin& verdict, int local_ranks);
  /// What a rank that joins needs to go on as this one: take_over() of it.
  message::HandOver hand_over() const;
  void take_over(message::HandOver handed);
  /// An agreed order of another rank's, with values of their types: what CBOR brings has none (a double that
  /// happens to be whole). Error: as of checked_order().
  Result<Committed> checked(Committed committed) const;
  /// The orders of late that this rank knows to be agreed, with their steps.
  const std::deque<Committed>& committed() const { return committed_; }
  /// Whether it is known that the order was refused as it was applied.
  bool was_refused(std::uint64_t order) const;

  /// Whether an outcome is awaited; messages are worth looking for more often then.
  bool awaiting_outcome() const { return open_.has_value() || meeting_; }

 private:
  struct Open {
    std::uint64_t ticket = 0;
    Order order;
    std::uint64_t withdraws = 0;  ///< an order's id; 0: none
  };

  void prepare(const message::Prepare& asked);
  /// Whether this rank can; then that is open.
  Result<void> open(const message::Prepare& asked);
  Result<void> can_apply(const Order& order);
  Result<void> can_withdraw(std::uint64_t order) const;
  void fence(const message::Fence& asked);
  void commit(const message::Commit& agreed);
  void abort(const message::Abort& aborted);
  void cancel(const message::Cancel& cancelled);
  void inquire(const message::Inquire& asked);
  void kill_if_here(const message::Die& stuck) const;
  Result<message::NewestCommit> checked(message::NewestCommit commit) const;
  void take_commit(message::NewestCommit commit);
  void tell(const OrderApplied& applied);
  message::Beat beat_now(Clock::time_point now) const;
  /// Ranks of one host beat at the same moments of its clock, those that others send to a part of the
  /// interval later: so rank 0 hears them all in one turn, and wakes for none of them alone.
  Clock::time_point beat_after(Clock::time_point now) const;
  RunState state() const;
  void answer(const message::ToRankZero& message) { parts_.channel.send(0, encoded(message)); }

  Parts parts_;
  std::optional<Fault> refuse_;  ///< FOOTPLATE_FAULT=refuse:…
  std::optional<Open> open_;
  bool meeting_ = false;  ///< the training thread waits for the other ranks
  OverdueCounts overdue_;
  std::optional<LedgerDumps> dumps_;  ///< where there are a ledger and a place for its files
  Clock::time_point next_beat_{};
  bool introduced_ = false;  ///< rank 0 of this world was sent a heartbeat
  std::chrono::milliseconds interval_ = std::chrono::milliseconds::max();
  std::optional<RunState> told_;             ///< the state in the last heartbeat
  std::optional<std::int64_t> told_saving_;  ///< likewise, what is written beside training
  // Of late, for a rank 0 that the others' messages haven't reached.
  std::optional<message::NewestCommit> commit_;
  std::deque<Committed> committed_;       ///< oldest first
  std::deque<message::Applied> applied_;  ///< oldest first
  std::uint64_t ticket_ = 0, order_ = 0;  ///< largest ones seen
};

}  // namespace footplate
