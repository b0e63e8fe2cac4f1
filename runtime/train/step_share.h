#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/optim/optimizer_share.h"
#include "runtime/train/gradient_buffer.h"

namespace footplate {

/// The work of a step where each rank updates its share of the parameters (optim.shard): what is summed over
/// the ranks beside the gradients, and how all ranks get all parameters again. They travel in the buffer of
/// the gradients, which nobody needs any more by then. Training thread.
class StepShare {
 public:
  /// All outlive it. `buffer`: cut among the ranks of `communicator`, which stay the same. `copies_from`:
  /// each rank also gets the gradients of the rank at this distance before it; 0: none.
  StepShare(const std::vector<Parameter>& parameters, GradientBuffer& buffer, Communicator& communicator,
            int copies_from);

  /// What of the gradients is this rank's, and what it has a copy of.
  const KeptShares& kept() const { return kept_; }

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

  GradientBuffer& buffer_;
  Communicator& communicator_;
  const int copies_from_;
  const KeptShares kept_;
  bool parameters_are_whole_ = true;
  std::vector<at::Tensor> own_gradients_;            ///< the blocks
  std::vector<at::Tensor> own_values_, own_places_;  ///< of parameters, and where they travel
  std::vector<at::Tensor> values_, places_;          ///< the same of all ranks
  at::Tensor sums_;                                  ///< doubles: GradientBuffer::all_sums, and the squares
};

}  // namespace footplate
