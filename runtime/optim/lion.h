#pragma once

#include "runtime/optim/momentum_optimizer.h"

namespace footplate {

/// Lion (Chen et al. 2023): each parameter moves by the learning rate, in the direction that the sign of an
/// interpolated gradient has. Weight decay is decoupled.
class Lion final : public MomentumOptimizer {
 public:
  using MomentumOptimizer::MomentumOptimizer;

  void step(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip) override;
};

}  // namespace footplate
