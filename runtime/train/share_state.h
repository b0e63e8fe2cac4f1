#pragma once

#include <functional>
#include <memory>

#include "runtime/orders/steerable.h"
#include "runtime/train/train_step.h"
#include "runtime/train/training.h"

namespace footplate {

class Reporter;

// Which rank has what of the optimizer's state (optim.shard, ckpt.redundancy). Where that changes, `step` is
// made for it, and each rank gets its share, and its copy of another one, bit for bit. Collective; training
// thread.

/// Within Steerable::rejoin(): among the ranks of now, wherever the state is. Whoever is one step behind
/// makes that step's update with the gradients that it has; a rank whose state isn't whole gives nothing.
/// `level` brings what isn't divided level: all but parameters and the optimizer's state, and the counts of
/// `step`; it may be called twice. `had`: null at first, and once this has succeeded; in between it is what
/// this rank had, for the next try. Errors: as of the collectives; a rank that is whole and not behind stays
/// so.
Result<void> share_state(Training& training, const Reporter& reporter, std::unique_ptr<TrainStep>& step,
                         std::unique_ptr<OptimizerShare>& had, const Rejoin& now,
                         const std::function<Result<void>()>& level);

/// Within Steerable::rejoin(), too, where state is gone that a checkpoint has: among the ranks of now, each
/// with its share still to be filled. What this rank had of the state is gone as well. Errors: as of the
/// collectives.
Result<void> divide_anew(Training& training, const Reporter& reporter, std::unique_ptr<TrainStep>& step,
                         std::unique_ptr<OptimizerShare>& had, const Rejoin& now);

/// Between steps, live: as `wanted`. Errors, and all is as before: a rank has no memory for it, the same on
/// all; or as of the collectives.
Result<void> change_sharding(Training& training, const Reporter& reporter, std::unique_ptr<TrainStep>& step,
                             const Sharding& wanted);

/// All copies become what the ranks that they are of have: after a checkpoint was loaded. Nothing is done
/// where there are none. Errors: as of the collectives.
Result<void> copy_shares(const Training& training, const TrainStep& step);

}  // namespace footplate
