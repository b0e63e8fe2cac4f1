#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "runtime/optim/learning_rate.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/parameter_group.h"

namespace footplate {

/// AdamW (Loshchilov and Hutter 2019) through LibTorch's fused kernel: one pass over parameters,
/// gradients and moments.
class AdamW final : public Optimizer {
 public:
  AdamW(std::vector<ParameterGroup> groups, ComputeDevice& device);

  void set_learning_rate(double rate) override { rate_.set(rate); }
  void step(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip) override;
  void list_state(StateTable& table) const override;
  void forget_gradients() override;
  void take_gradients(std::vector<ParameterGroup> groups) override;

 private:
  struct Part {
    ParameterGroup group;
    std::vector<at::Tensor> first_moments, second_moments, steps;
  };

  ComputeDevice& device_;
  std::vector<Part> parts_;
  at::Tensor step_;  ///< updates done; one element, shared by all parameters
  LearningRate rate_;
};

}  // namespace footplate
