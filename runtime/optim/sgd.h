#pragma once

#include "runtime/optim/momentum_optimizer.h"

namespace footplate {

/// Stochastic gradient descent with momentum, through LibTorch's fused kernel. Weight decay is added to the
/// gradient, as is usual with it.
class Sgd final : public MomentumOptimizer {
 public:
  using MomentumOptimizer::MomentumOptimizer;

  void step(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip) override;
};

}  // namespace footplate
