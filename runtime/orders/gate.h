#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/orders/gate_state.h"
#include "runtime/orders/training_side.h"

namespace footplate {

/// Where the training thread waits for those who are left.
struct RecoveryState {
  std::int64_t step = 0;     ///< completed; -1: this rank's state is undefined
  std::int64_t reached = 0;  ///< the step that it stands at, whatever its state is
  bool paused = false;
  bool finished = false;
  std::optional<std::string> save;  ///< the tag of one that was interrupted
  std::uint64_t commits = 0;
  std::uint64_t applied = 0;  ///< how many orders
  std::uint64_t begun = 0;    ///< of the orders applied, the number of the last one whose calls were begun
  std::uint64_t refused = 0;  ///< and of the last one that was refused as it was applied; 0: none
  std::string refusal = {};
};

/// The two threads of a rank meet here: the training thread at the top of every step (training()), the
/// control thread, whose side this is, with fences, commits and the end. More than 30 methods: one for each
/// thing that the control thread tells or asks, each a few lines over the part that it is about.
class Gate {
 public:
  /// `wake` ends the control thread's sleep; any thread.
  Gate(const Schema& schema, Settings settings, Progress& progress, std::function<void()> wake,
       Json store = Json::object());

  /// The training thread's side.
  StepGate& training() { return training_; }

  // Before the training thread's first enter().

  void set_steerable(Steerable& steerable) { training_.applier().set_steerable(steerable); }
  /// What StepGate::lost() answers.
  void set_recoverable(bool recoverable) { training_.applier().set_recoverable(recoverable); }
  /// Orders that let a process in count where they name this start of the run.
  void set_start(std::string start) { training_.applier().set_start(std::move(start)); }
  /// In a process that joins a run: the number of orders applied so far, and the id of the last one. The
  /// training thread stands until resumed; its state is nobody's.
  void join(std::uint64_t applied, std::uint64_t last_applied);

  /// The first step that this rank hasn't begun, and from now on doesn't begin before commit(),
  /// withdraw() or release_fence(). Waits for nothing.
  std::int64_t propose_fence();
  void release_fence();
  /// Releases the fence, and has `committed` applied at its step.
  void commit(Committed committed);
  /// Releases the fence, and forgets a committed order whose step hasn't come.
  void withdraw(std::uint64_t order);
  bool is_pending(std::uint64_t order) const;
  /// Sets abandon() while that call runs.
  void cancel(std::uint64_t order, std::size_t call);
  /// Gives up the evaluation of the parameters after `step`, whoever asked for it.
  void cancel_evaluation(std::int64_t step);
  /// What became of a meeting; an error ends it for whoever comes later, too.
  void met(std::uint64_t ticket, const std::string& error);
  /// All ranks are at the end and no order is open: enter() returns `end`.
  void finish();
  /// While the training thread stands: what join() wants.
  std::pair<std::uint64_t, std::uint64_t> applied() const;

  // After a loss, in this order (recovery.h).

  /// What interruption() says, until resumed.
  void set_interruption(std::string why);
  /// A rank is lost: the training thread is held as soon as it comes here, and meetings end.
  void hold_for_recovery();
  /// Once it stands here.
  std::optional<RecoveryState> recovery_state() const;
  /// It goes on as `rejoin` says. No fence and no meeting is open any more; this rank has heard of so many
  /// commits; `paused` and `finished` as for the source. Calls of the orders up to number `begun` are over:
  /// another rank has begun them, and they failed by the loss.
  void resume(const Rejoin& rejoin, std::uint64_t commits, std::uint64_t begun, bool paused, bool finished);
  /// Nobody can go on: enter() throws std::runtime_error with `why`, now or when it is called.
  void give_up(const std::string& why);

  /// Rank 0: after an event of one of these topics, enter() waits for its release, at most so many
  /// milliseconds. Nothing waits where there are none. Releases what is held for a topic that is no longer
  /// there.
  void set_sync(SyncTopics budgets);
  void release(std::uint64_t hold);

  Forecast forecast() const;
  Settings settings() const;
  Json store() const { return training_.store(); }
  Held held() const;
  /// What happened since the last drain, in order.
  std::vector<GateEvent> drain();
  /// Whether somebody follows the metrics: if not, they wait for the control thread's next turn.
  void set_followed(bool followed);
  /// Whether events come one upon the other: drain again soon, publish() doesn't wake for each.
  bool streaming() const;

  std::chrono::nanoseconds time_at_fences() const;
  std::uint64_t stops_at_fences() const;

 private:
  GateState state_;
  TrainingSide training_;
};

}  // namespace footplate
