#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/models/parameter.h"

namespace footplate {

/// What travels with the last bucket of gradients: sums over the ranks, once reduced. Floats, as the
/// gradients are; token counts are exact up to 2^24 a step.
struct StepSums {
  float tokens = 0;
  float loss = 0;
  float failed_ranks = 0;
  float evaluations_ready = 0;  ///< ranks whose share of the AsyncEvaluation under way is there
};

/// All gradients of a rank in one flat buffer, of which each parameter's grad is a view, in reverse
/// parameter order (about the order in which backward makes them), and StepSums behind them.
class GradientBuffer {
 public:
  /// Gives every parameter its grad; autograd accumulates into it from then on.
  explicit GradientBuffer(const std::vector<Parameter>& parameters);

  /// Before a step's first backward.
  void zero();

  /// One dimension, without the sums; between parameters there are a few zeros for alignment.
  const at::Tensor& gradients() const { return gradients_; }
  /// Where this rank's loss is added without reading it: one element.
  const at::Tensor& loss() const { return loss_; }
  StepSums& sums();

  /// A stretch of the buffer that is reduced at once.
  struct Bucket {
    Buffer buffer;
    std::size_t first = 0, last = 0;  ///< its parameters, as [first, last) of reversed parameter order
  };

  /// Cuts the buffer at parameters into buckets of at least `bytes` (the last may be smaller), in the
  /// order of the buffer; the last one carries the sums.
  std::vector<Bucket> buckets(std::int64_t bytes) const;

 private:
  std::vector<std::int64_t> starts_;  ///< of each parameter in reversed order; one more: of the sums
  at::Tensor flat_, gradients_, loss_;
};

}  // namespace footplate
