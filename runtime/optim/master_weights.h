#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/optim/optimizer.h"
#include "runtime/optim/parameter_group.h"

namespace footplate {

/// Whether some of these parameters are in bfloat16, with this rank or another one.
bool has_bf16(const std::vector<ParameterGroup>& groups);

/// Of parameters in bfloat16 an optimizer moves float32 copies, the master weights: a step is often too small
/// for the 8 bits that bfloat16 has. After each step the parameters are the rounded masters. They are state
/// of the optimizer, "optim/master/NAME", shared among ranks as the rest of it is. At first they are what the
/// parameters are.
class MasterWeights final : public Optimizer {
 public:
  /// Makes the optimizer for these groups, in which all values are float32.
  using Make = std::function<std::unique_ptr<Optimizer>(std::vector<ParameterGroup>)>;

  /// `device` outlives it.
  MasterWeights(std::vector<ParameterGroup> groups, ComputeDevice& device, const Make& make);

  void set_learning_rate(double rate) override { inner_->set_learning_rate(rate); }
  void step(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip) override;
  void list_state(StateTable& table) const override;
  void take_parameters() override;
  void forget_gradients() override { inner_->forget_gradients(); }
  void take_gradients(std::vector<ParameterGroup> groups) override {
    inner_->take_gradients(std::move(groups));
  }

 private:
  ComputeDevice& device_;
  std::vector<ParameterGroup> masters_;          ///< of each group those in bfloat16, with float32 values
  std::vector<at::Tensor> parameters_, values_;  ///< all of them, and their masters
  std::unique_ptr<Optimizer> inner_;
};

}  // namespace footplate
