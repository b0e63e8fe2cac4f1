#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "runtime/optim/learning_rate.h"
#include "runtime/optim/momenta.h"
#include "runtime/optim/optimizer.h"

namespace footplate {

/// Lion (Chen et al. 2023): each parameter moves by the learning rate, in the direction that the sign of an
/// interpolated gradient has. Weight decay is decoupled.
class Lion final : public Optimizer {
 public:
  Lion(std::vector<ParameterGroup> groups, ComputeDevice& device)
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
