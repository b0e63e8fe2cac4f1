#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "runtime/optim/learning_rate.h"
#include "runtime/optim/momenta.h"
#include "runtime/optim/optimizer.h"

namespace footplate {

/// Stochastic gradient descent with momentum, through LibTorch's fused kernel. Weight decay is added to the
/// gradient, as is usual with it.
class Sgd final : public Optimizer {
 public:
  Sgd(std::vector<ParameterGroup> groups, ComputeDevice& device)
      : device_(device), parts_(Momenta::of(std::move(groups))), rate_(device) {}

  void set_learning_rate(double rate) override { rate_.set(rate); }
  void step(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip) override;
  void list_state(StateTable& table) const override { Momenta::list_state(parts_, table, device_); }

 private:
  ComputeDevice& device_;
  std::vector<Momenta> parts_;
  LearningRate rate_;
};

}  // namespace footplate
