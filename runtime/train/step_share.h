#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/optim/optimizer_share.h"
#include "runtime/train/bucket_pool.h"
#include "runtime/train/gradient_buffer.h"
#include "runtime/train/gradient_reducer.h"
#include "runtime/train/parameter_gather.h"
#include "runtime/train/phase_timer.h"

namespace footplate {

/// The work of a step where each rank updates its share of the parameters (optim.shard): what is summed over
/// the ranks beside the gradients, and how all ranks get all parameters again. Training thread.
class StepShare {
 public:
  /// All outlive it. `buffer`: cut among the ranks of `communicator`, which stay the same; where it has no
  /// gradients, the rank keeps its share of them here. `copies_from`: each rank also gets the gradients of
  /// the rank at this distance before it; 0: none.
  StepShare(const std::vector<Parameter>& parameters, GradientBuffer& buffer, Communicator& communicator,
            int copies_from);

  /// What of the gradients is this rank's, and what it has a copy of.
  const KeptShares& kept() const { return kept_; }

  /// What brings the gradients here; this outlives it.
  std::unique_ptr<GradientReducer> make_reducer(PhaseTimer& timer);

  /// After the gradients: sums StepSums and the others over the ranks, and with them the squares of all
  /// gradients, of which each rank has its share. Once it has succeeded on any rank, every rank has the
  /// summed gradients of its share and of its copy. Errors: as of an operation.
  Result<void> reduce_sums();
  /// Of the summed gradients of all ranks: their norm, on the device; one double.
  at::Tensor norm() const;
  /// After the update: all ranks get the parameters that the others have updated. Errors: as of an operation;
  /// then the parameters are of both steps.
  Result<void> gather();
  bool parameters_are_whole() const { return parameters_are_whole_; }  ///< of one step

 private:
  std::unique_ptr<Work> pass_gradients();

  const std::vector<Parameter>& parameters_;
  GradientBuffer& buffer_;
  Communicator& communicator_;
  const int copies_from_;
  const KeptShares kept_;
  BucketPool pool_;  ///< where the buffer has no gradients
  const std::unique_ptr<ParameterGather> gather_;
  bool parameters_are_whole_ = true;
  std::vector<at::Tensor> own_gradients_;  ///< the blocks
  at::Tensor sums_;                        ///< doubles: GradientBuffer::all_sums, and the squares
};

}  // namespace footplate
