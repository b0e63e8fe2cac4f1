#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/order.h"
#include "protocol/settings.h"
#include "runtime/orders/call_result.h"
#include "runtime/orders/held_share.h"

namespace footplate {

/// How a rank goes on after others were lost: what all who are left have agreed on.
struct Rejoin {
  std::int64_t step = 0;  ///< completed steps, from which all go on
  int source = 0;         ///< rank (of the new world) whose state counts
  bool level = false;     ///< somebody is behind: all take the state of `source`
  bool behind = false;    ///< this rank is
  bool shared = false;    ///< some rank shares state with others: it is divided among those of now
  bool whole = true;      ///< this rank's state is that of a step: of `step`, or of the one before
  std::string checkpoint =
      {};                 ///< all take their state from this one, which is of `step`; empty: from a rank
  std::int64_t left = 0;  ///< the newest step that any rank had completed, where there is a checkpoint
  bool save = false;      ///< a save was interrupted: save again
  std::string tag = {};   ///< of that save
  std::uint32_t generation = 0;  ///< Communicator::rejoin
  std::uint64_t sequence = 0;    ///< likewise
  int local_ranks = 1;           ///< on this host, now
  std::uint64_t refused = 0;     ///< number of the last order that some rank has seen refused; 0: none
  std::string refusal = {};      ///< why
  std::uint64_t applied = 0;     ///< orders: as many as the rank has that has applied most
};

/// What an order's settings make new at its step.
struct Renewal {
  bool communicators = false;  ///< Applies::comm
  bool state = false;          ///< Applies::state
};

/// What orders act on, as control sees it: the trainer, and handlers beside it (HandlerTable). What one has
/// no say in it leaves as it is here.
class Steerable {
 public:
  virtual ~Steerable() = default;

  /// Those that call() does, of the actions that aren't control's own.
  virtual std::vector<std::string_view> actions() const { return {}; }

  /// Control thread, while training runs. Whether this rank can apply `order`; the schema, the roles
  /// and the constraints have been checked before. `after` is what the settings will be. An error is
  /// the order's refusal, on all ranks: say what is missing, on which rank, what would help.
  virtual Result<void> prepare(const Order& /*order*/, const Settings& /*after*/) { return {}; }

  /// Training thread, at the top of `step`, before settings_changed(): the settings of an order need `what`,
  /// and `after` is what all will be. Collective. Seconds that new communicators took; nothing: there are
  /// none to make. Errors, the same on all ranks: lost (it is done again once those who are left have found
  /// together); else the order's refusal, and all is as before.
  virtual Result<std::optional<double>> renew(const Settings& /*after*/, Renewal /*what*/,
                                              std::int64_t /*step*/) {
    return std::optional<double>();
  }

  /// Training thread, at the top of `step`, before renew(), with the gate locked: sets in `after` what
  /// follows from an order's settings, the same on all ranks (train.steps from train.epochs), and gives the
  /// names.
  virtual std::vector<std::string> settle(const Settings& /*before*/, Settings& /*after*/) { return {}; }

  /// Training thread, at the top of `step`, before anything of the step is enqueued: the settings of
  /// one order are in force from here on. Returns what else moved (optim.lr follows train.steps).
  /// Can't fail: what may fail belongs into prepare.
  virtual std::vector<Moved> settings_changed(const Settings& /*now*/, std::int64_t /*step*/) { return {}; }

  /// Training thread, at the top of `step`: runs an action that isn't control's own (run.pause,
  /// run.resume and run.stop are). Collective: all ranks call it at the same step. The result goes
  /// to whoever asked; rank 0's counts. Error (lost): a rank is, the next enter() waits for the others.
  virtual Result<CallResult> call(const Call& call, std::int64_t /*step*/) {
    return fail(ErrorKind::refused, call.action + " is nothing that can be done here");
  }

  /// Training thread, inside StepGate::enter(), at a loss: from here on, until rejoin(), nothing of this rank
  /// changes what the verdict depends on, such as the run's checkpoints. `whole`: its state is that of a
  /// step.
  virtual void stand(bool /*whole*/) {}
  /// Control thread, while the training thread stands at a loss: what the verdict needs to know of this rank.
  virtual HeldShare held_share() const { return {}; }

  /// Training thread, inside StepGate::enter(), on every rank that is left: takes part in the new world, and
  /// brings whoever is behind level. Errors: lost (another rank meanwhile; where this rank is behind its
  /// state is undefined now), else the end of this rank.
  virtual Result<void> rejoin(const Rejoin& /*rejoin*/) { return {}; }
  /// Training thread, likewise, once this rank is level: takes up what the loss interrupted. Errors: lost
  /// (another rank meanwhile; this one's state is whole), else the end of this rank.
  virtual Result<void> take_up(const Rejoin& /*rejoin*/) { return {}; }
};

}  // namespace footplate
