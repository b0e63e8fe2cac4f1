#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "protocol/messages/event.h"
#include "protocol/order.h"
#include "protocol/settings.h"
#include "runtime/orders/call_result.h"
#include "runtime/watch/state_hash.h"

namespace footplate {

/// Why a run ends.
struct Ending {
  std::string reason = "done";  ///< "done", "asked", "restart", "load", "signal", "time limit", "failed", …
  bool save = false;            ///< a checkpoint is wanted
  bool resumable = false;       ///< exit code 75 instead of 0
  std::string note;             ///< what whoever asked gave as the action's reason
  bool script_error = false;    ///< a job script or a rule failed: exit code 3
  std::optional<LoadTarget> load;  ///< of ckpt.load: what the next start begins with (LoadHandler)
};

/// A call of an order whose outcome comes after its step.
struct DeferredCall {
  std::uint64_t order = 0;
  std::size_t call = 0;  ///< in that order
  std::string action;
};

/// The training thread's view of control: the one place where orders enter the step loop.
///
///   while (gate.enter(step) == StepGate::Verdict::train) { train_step(); ++step; }
class StepGate {
 public:
  enum class Verdict { train, end };
  virtual ~StepGate() = default;

  /// Training thread, at the top of every step. Costs one store and one load when nothing is due.
  /// Applies what is due at `step` (Steerable::settings_changed, Steerable::call); blocks while the
  /// ranks agree on an order that may be due here, and while paused. At `step >= train.steps`, or
  /// once a stop was applied, blocks until all ranks are there and no order prolongs the run, and
  /// returns end. All ranks get the same verdict for the same step.
  virtual Verdict enter(std::int64_t step) = 0;

  /// After `end`: why.
  virtual Ending ending() const = 0;

  /// The settings in force. Training thread; changes only inside enter().
  virtual const Settings& settings() const = 0;

  /// Id of the last order whose settings are in force; 0: none yet. Training thread.
  virtual std::uint64_t last_applied() const { return 0; }
  /// How many orders are in force; their ids may be in another order.
  virtual std::uint64_t applied() const { return 0; }

  /// What `store` holds (docs/lua.md): equal on all ranks at the same step. Training thread.
  virtual Json store() const { return Json::object(); }

  /// Orders that are agreed for a step that hasn't come: a list, each with its id and its at_step. Training
  /// thread.
  virtual Json orders_ahead() const { return Json::array(); }

  /// Whether the call that is running (an evaluation, a save) should be given up: it was cancelled, a stop
  /// is committed, or the others have waited for this rank in vain. Cheap; looked at between batches. May
  /// differ between ranks for a moment: whoever sees it first tells the others through the reduction's status
  /// element.
  virtual bool abandon() const = 0;

  /// Training thread, inside Steerable::call(), on every rank: the outcome of this call comes later, by
  /// conclude(), and what call() returns isn't told. Nothing: no order has called.
  virtual std::optional<DeferredCall> defer() { return std::nullopt; }
  /// Any thread, once for each deferred call: its outcome, of which rank 0's counts.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): who overrides it keeps the outcome
  virtual void conclude(const DeferredCall& /*call*/, Result<CallResult> /*outcome*/) {}

  /// Training thread, on every rank at the same point of a step: waits until all ranks are there, at most
  /// `at_most` after the first one came. All get the same answer: nothing, and all are there; or an error
  /// (timed_out) that names who wasn't and where it is. Who comes after that is told so at once; abandon()
  /// tells it earlier. `what` is for people: "the reduction of an evaluation".
  virtual Result<void> meet(const std::string& /*what*/, std::chrono::milliseconds /*at_most*/) { return {}; }

  /// Training thread, on every rank after the same step: compared across ranks off this thread. A difference
  /// names the odd rank and its tensors, and becomes an event and a note in the status.
  virtual void report(StateHash state) = 0;

  /// Training thread, within a step: the next enter() holds as after run.pause. No order tells the others,
  /// so every rank has to call it within the same step, for a reason that all have in common.
  virtual void pause() = 0;

  /// Training thread, rank 0: an order of footplate's own, which is given once it can be, and agreed on as
  /// any other.
  virtual void propose(const Order& /*order*/) {}

  /// What a lost rank interrupted.
  enum class Interrupted {
    work,  ///< a step or an evaluation: nothing has changed, or the step is done but for what others send
    save,  ///< a checkpoint, which is made again
    state  ///< this rank's state was being overwritten: it is nobody's now
  };

  /// Training thread: an operation has failed because a rank is lost (ErrorKind::lost). Whether the run goes
  /// on with those who are left: the next enter() then waits until they have found together and brings this
  /// rank level with them (Steerable::rejoin), which may move the step. `tag`: of a save.
  virtual bool lost(Interrupted /*what*/, const std::string& /*tag*/) { return false; }

  /// Training thread, within Steerable::take_up(): every rank is level.
  virtual void all_are_level() {}

  /// Training thread, after an operation has failed so: why, where no rank died ("all_reduce #12 of
  /// gradients … waits for rank 1 …"); else empty.
  virtual std::string interruption() const { return ""; }

  /// Rank 0, any thread: an event for the console and events.jsonl.
  virtual void publish(EventData data) = 0;
};

}  // namespace footplate
