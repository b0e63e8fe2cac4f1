#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/device/compute_device.h"
#include "runtime/models/parameter.h"
#include "runtime/optim/gradient_layout.h"

namespace footplate {

/// What travels with the last bucket of gradients: sums over the ranks, once reduced. Floats, as the
/// gradients are; token counts are exact up to 2^24 a step.
struct StepSums {
  float loss = 0;  ///< added up where it is computed; the others are the host's
  float tokens = 0;
  float failed_ranks = 0;
  float out_of_memory_ranks = 0;  ///< of the failed ones, those that would get along with less at once
  float evaluations_ready = 0;    ///< ranks whose share of the AsyncEvaluation under way is there
  float saves_under_way = 0;      ///< ranks that write a checkpoint beside training
  float due = 0;                  ///< rank 0's alone: what its clock says (Timetable::by_time)
  /// Of a rank the bits of a hash of its state, 0 or 1 each: where all have the same, the sums are 0 or their
  /// number.
  std::array<float, 16> state_bits = {};
};

/// Which gradients a rank keeps until the optimizer's pass.
enum class KeptGradients {
  all,    ///< in the buffer, of which each parameter's grad is a view
  share,  ///< its share of them, which is kept elsewhere (BucketReducer); parameters have no grad
};

/// All gradients of a rank in one flat buffer on its device (GradientLayout); behind them StepSums, and
/// others.
class GradientBuffer {
 public:
  /// Gives every parameter its grad, if they are kept here; autograd accumulates into it from then on.
  /// `others`: more sums that travel with StepSums. `ranks`: among so many the gradients can be cut.
  GradientBuffer(const std::vector<Parameter>& parameters, const ComputeDevice& device,
                 std::int64_t others = 0, int ranks = 1, KeptGradients kept = KeptGradients::all);

  /// Before a step's first backward.
  void zero();

  const GradientLayout& layout() const { return layout_; }
  KeptGradients kept() const { return kept_; }
  /// One dimension, without the sums; between parameters, and at the end, there are a few zeros for
  /// alignment. Empty where they are kept elsewhere.
  const at::Tensor& gradients() const { return gradients_; }
  /// Some of them, on their way to other ranks.
  Buffer stretch(const Stretch& elements) const;
  /// The same with the sums, which are right behind it: the last ones.
  Buffer stretch_and_sums(const Stretch& elements) const;

  /// Where this rank's loss is added without reading it: one element.
  const at::Tensor& loss() const { return loss_; }
  /// The other sums of this rank; they count once they are published, before the last bucket is reduced.
  StepSums& mine() { return *reinterpret_cast<StepSums*>(host_.mutable_data_ptr<float>()); }
  void publish();
  /// StepSums on the device, as one dimension.
  const at::Tensor& sums() const { return sums_; }
  /// The others, on the device: added to where they are computed, and sums over the ranks once reduced.
  const at::Tensor& others() const { return others_; }
  /// StepSums and the others: one dimension.
  const at::Tensor& all_sums() const { return all_sums_; }
  /// StepSums on the host: waits for the device.
  StepSums fetch();

 private:
  const GradientLayout layout_;
  const KeptGradients kept_;
  at::Tensor flat_, gradients_, loss_, all_sums_, sums_, others_;
  at::Tensor host_;  ///< as sums_
};

}  // namespace footplate
