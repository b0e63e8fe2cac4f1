#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/control/control_options.h"
#include "runtime/control/rank_zero.h"
#include "runtime/control/recovery_report.h"
#include "runtime/orders/gate.h"
#include "runtime/orders/participant.h"
#include "runtime/watch/policies.h"

namespace footplate {

/// One rank's way into a new world: after a loss, after a collective that hung, or because a process joins;
/// in that process from its start. All come here, each as it notices; nothing in it waits for a training
/// thread. Control thread.
class RankRecovery {
 public:
  using Clock = SteadyClock;
  struct Parts {
    const ControlOptions& options;
    Gate& gate;
    Participant& participant;
    std::unique_ptr<RankZero>& rank_zero;  ///< null on the others
    /// Handles what was said in the world that ends. Whether this rank goes on.
    std::function<bool(Clock::time_point now)> catch_up;
    /// Handles what the training thread has told.
    std::function<void()> tell_events;
    /// Makes rank_zero: this rank has become rank 0.
    std::function<void(std::uint64_t first_order_id)> lead;
    /// Nobody can go on, or this rank can't.
    std::function<void(const std::string& why)> give_up;
    /// All have agreed how to go on.
    std::function<void()> gone_on;
  };

  explicit RankRecovery(Parts parts);

  void follow(const Settings& settings) { on_loss_ = choice_of<OnLoss>(settings, "comm.on_loss"); }
  /// The start of a process that joins a run: what its rank 0 said.
  void join_run(const Welcome& welcome);

  /// From the loss until all have agreed how to go on.
  bool under_way() const { return under_way_; }
  /// A collective hangs, and all ranks have been told.
  void set_rebuild_due(bool due) { rebuild_due_ = due; }
  /// An order lets a process in, and has brought the training thread to a halt; or it failed.
  void set_admission_due(bool due) { admission_due_ = due; }
  bool admission_due() const { return admission_due_; }
  /// Whether recover() or admit() has to be called at once.
  bool is_due() const { return rebuild_due_ || admission_due_; }
  bool rebuild_due() const { return rebuild_due_; }
  /// Why all are about to rebuild, or to end, though no rank died; empty: they aren't.
  const std::string& remedy() const { return remedy_; }
  RankNumbers& numbers() { return numbers_; }

  /// A rank is lost, or a rebuild is due.
  void recover(Clock::time_point now);
  /// All ranks, once the order that lets a process in has brought their training threads to a halt at one
  /// step.
  void admit(Clock::time_point now);
  /// While it is under way: tells rank 0 once the training thread stands.
  void tick();
  /// While it isn't: whether the training thread has stood for long because of a loss that neither this
  /// thread nor another rank knows of. Then all have to find together again, or it would stand for ever.
  bool has_lone_loss(Clock::time_point now);
  void handle(int source, const message::Standing& standing, Clock::time_point now);
  void handle(const message::Rejoin& verdict);
  void handle(const message::Remedy& remedy);
  /// The training threads do go on: rank 0 tells who has joined.
  void all_are_level(Clock::time_point now);
  /// Where the remedy is to end: once what this rank passes on has gone.
  void end_if_due(Clock::time_point now);

 private:
  /// A rank that is stopped, or the MPI library, may hold it up for ever: this thread with it.
  Result<void> in_time(const std::function<Result<void>()>& change);
  /// This rank's work in the world of now, until all stand.
  void world_changed(const Membership& before, Clock::time_point now);
  /// What the joining rank has to know, by rank 0.
  Welcome welcome() const;

  Parts parts_;
  World* world_;  ///< null: a lost rank ends the run
  OnLoss on_loss_ = OnLoss::rebuild;
  RankNumbers numbers_;
  bool under_way_ = false;
  bool told_standing_ = false;  ///< to the rank 0 of this generation
  std::optional<Clock::time_point> alone_since_;
  bool joining_ = false;  ///< this process, until it is level
  bool rebuild_due_ = false;
  bool admission_due_ = false;
  std::string remedy_;
  bool ends_by_remedy_ = false;
  Clock::time_point ends_at_ = Clock::time_point::max();
  RecoveryStory story_;
  /// Of an admission, until all are level; every rank's: rank 0 may be lost meanwhile.
  struct Admission {
    RecoveryStory story;
    message::Rejoin verdict;
  };
  std::optional<Admission> admission_;
};

}  // namespace footplate
