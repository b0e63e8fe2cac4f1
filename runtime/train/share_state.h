#pragma once

#include <functional>
#include <memory>

#include "runtime/orders/steerable.h"
#include "runtime/train/train_step.h"
#include "runtime/train/training.h"

namespace footplate {

class Reporter;

/// The ranks of now share the state among themselves (optim.shard), wherever it is: `step` is made anew for
/// them, and each has its share, and its copy of another one, bit for bit as it was. Whoever is one step
/// behind makes that step's update with the gradients that it has; a rank whose state isn't whole gives
/// nothing. `level` brings what isn't shared level: all but parameters and the optimizer's state. The counts
/// of `step` then are kept. Collective; training thread, within Steerable::rejoin(). Errors: as of the
/// collectives; this rank's state is undefined then.
Result<void> share_state(Training& training, const Reporter& reporter, std::unique_ptr<TrainStep>& step,
                         const Rejoin& now, const std::function<Result<void>()>& level);

/// All copies become what the ranks that they are of have: after a checkpoint was loaded. Collective,
/// training thread; nothing is done where there are none. Errors: as of the collectives.
Result<void> copy_shares(const Training& training, const TrainStep& step);

}  // namespace footplate
