#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "runtime/control/console_feed.h"
#include "runtime/control/control_options.h"
#include "runtime/control/proposal.h"
#include "runtime/control/recovery.h"
#include "runtime/control/recovery_report.h"
#include "runtime/control/replacement.h"
#include "runtime/control/state_repair.h"
#include "runtime/control/status_board.h"
#include "runtime/control/stuck_ranks.h"
#include "runtime/control/world_watch.h"

namespace footplate {

/// What exists on rank 0 alone: the coordinator, what watches the ranks, and the line to the console. From
/// the start, or from when this rank has become rank 0; then to the end. Control thread.
class RankZero {
 public:
  using Clock = SteadyClock;
  using WallTime = std::chrono::system_clock::time_point;
  /// All outlive it.
  struct Parts {
    const ControlOptions& options;
    Gate& gate;
    Participant& participant;
    RankNumbers& numbers;
    StatusBoard& board;
  };

  RankZero(Parts parts, std::uint64_t first_order_id);
  RankZero(const RankZero&) = delete;
  RankZero& operator=(const RankZero&) = delete;

  Coordinator& coordinator() { return coordinator_; }
  ConsoleFeed& console() { return console_; }
  const ConsoleFeed& console() const { return console_; }
  Replacement& replacement() { return replacement_; }

  /// The limits and policies in force.
  void follow(const Settings& settings);
  /// Every report and event: to the records, then to the console. `hold`: training waits for its release.
  void report(Report report, WallTime time = std::chrono::system_clock::now(), std::uint64_t hold = 0);
  /// What the training thread has published.
  void measured(const LoggedMetrics& metrics) { status_.metrics(metrics); }
  /// An order of the training thread's; given once it can be.
  void propose(Order order) { proposal_.propose(std::move(order)); }

  void handle(int source, const message::ToRankZero& message, Clock::time_point now);
  void handle(const HeardOf& heard, Clock::time_point now) { status_.heard_of(heard, now); }
  /// A line of the console (docs/protocol.md, "Rank 0 and the console").
  void handle(ConsoleMessage message);

  /// What is to be done now against a collective that hangs.
  CollectiveTimeouts::Due tick(Clock::time_point now);
  /// In its place, until all have agreed how to go on.
  void tick_recovery(Clock::time_point now);
  Clock::time_point next_tick() const;
  /// Whether answers are awaited; messages are worth looking for more often then.
  bool awaiting() const;

  // After a loss, or an admission, in this order.

  /// Nothing is agreed on until go_on().
  void suspend() { coordinator_.suspend(); }
  /// The world is `after`; this rank was its rank 0 before, too.
  void change_world(const Membership& before, const Membership& after, Clock::time_point now);
  /// This rank leads since rank 0 was lost; `recorded`: the orders that the journal has.
  void take_the_lead(std::set<std::uint64_t> recorded) { recorded_ = std::move(recorded); }
  /// From now on the training threads are awaited.
  void await_standing(const Membership& members);
  /// The verdict, once: all stand.
  std::optional<message::Rejoin> add_standing(int source, const message::Standing& standing);
  void go_on(const message::Rejoin& verdict, const RecoveryStory& story, Clock::time_point now);
  /// Once all are level: before, no other rank could be spared. `story`: of the admission.
  void tell_joined(const RecoveryStory& story, const message::Rejoin& verdict, Clock::time_point now);

 private:
  WorldWatch::Parts watch_parts();
  void send_all(const message::ToRanks& message);
  /// Ends a run that has lasted, or has been paused, for as long as it may.
  void keep_limits(Clock::time_point now);
  void follow_changed(const SettingsUpdate& changed);
  /// A report of the coordinator's.
  void report_order(Report report);
  /// What repair and replacement wait for.
  void note(const EventData& event);
  void ask_ranks(const AskRanks& asked, Clock::time_point now);
  /// A training thread that doesn't come to stand holds all others up: it is named, and past the hard limit
  /// killed.
  void watch_recovery(Clock::time_point now);
  /// As of ControlOptions, where training can go back to it in place.
  Result<CheckpointAt> newest_checkpoint(std::int64_t at_most) const;
  /// "1 of 2 ranks" in the status, as long as ranks are missing.
  void note_missing();
  /// What is agreed on and not confirmed by all, or not recorded.
  void inherit_orders(const std::set<std::uint64_t>& recorded);

  Parts parts_;
  StatusTracker status_;
  Coordinator coordinator_;
  ConsoleFeed console_;
  StuckRanks stuck_;
  StateRepair repair_;
  Replacement replacement_;
  Proposal proposal_;
  CollectiveTimeouts::Memory timeouts_so_far_;
  Advice advice_;
  std::optional<WorldWatch> watch_;
  Clock::duration time_limit_{0}, pause_limit_{0};
  std::optional<Recovery> recovery_;
  Clock::time_point standing_since_{};               ///< the training threads are awaited
  bool recovery_told_ = false;                       ///< whom it waits for
  std::optional<std::set<std::uint64_t>> recorded_;  ///< until go_on()
};

}  // namespace footplate
