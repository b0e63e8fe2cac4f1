#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "runtime/optim/adamw.h"
#include "runtime/optim/momentum_optimizer.h"

namespace footplate {

/// Muon (Jordan et al. 2024): the momentum of a matrix is made orthogonal before it is applied. A tensor of
/// more dimensions, as a convolution's, is a matrix of its first one and the others. Vectors and tables
/// (v1::Group::is_table) go by AdamW. The update is scaled to AdamW's usual size (0.2 times the root of the
/// longer side; Liu et al. 2025), so that one learning rate fits both.
class Muon final : public MomentumOptimizer {
 public:
  Muon(std::vector<ParameterGroup> groups, ComputeDevice& device);

  void set_learning_rate(double rate) override;
  void step(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip) override;
  void list_state(StateTable& table) const override;
  void forget_gradients() override;
  void take_gradients(std::vector<ParameterGroup> groups) override;

 private:
  AdamW others_;
};

/// The nearest matrix with orthogonal rows or columns, roughly: five iterations of Newton and Schulz bring
/// singular values to 0.7 to 1.2. `matrix`: two dimensions, float32.
at::Tensor orthogonalized(const at::Tensor& matrix);

}  // namespace footplate
