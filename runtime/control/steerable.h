#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "protocol/order.h"
#include "protocol/settings.h"

namespace footplate {

/// What orders act on: the trainer, as control sees it.
class Steerable {
 public:
  virtual ~Steerable() = default;

  /// Control thread, while training runs. Whether this rank can apply `order`; the schema, the roles
  /// and the constraints have been checked before. `after` is what the settings will be. An error is
  /// the order's refusal, on all ranks: say what is missing, on which rank, what would help.
  virtual Result<void> prepare(const Order& order, const Settings& after) = 0;

  /// Training thread, at the top of `step`, before anything of the step is enqueued: the settings of
  /// one order are in force from here on. Returns what else moved (optim.lr follows train.steps).
  /// Can't fail: what may fail belongs into prepare.
  virtual std::vector<Moved> settings_changed(const Settings& now, std::int64_t step) = 0;

  /// Training thread, at the top of `step`: runs an action that isn't control's own (run.pause,
  /// run.resume and run.stop are). Collective: all ranks call it at the same step. The result goes
  /// to whoever asked; rank 0's counts.
  virtual Result<Json> call(const Call& call, std::int64_t step) = 0;
};

}  // namespace footplate
