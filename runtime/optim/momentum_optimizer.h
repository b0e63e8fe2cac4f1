#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "runtime/optim/learning_rate.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/parameter_group.h"

namespace footplate {

/// What sgd, lion and muon have in common: one running mean of its gradients for each parameter, zero at
/// first, kept as "optim/momentum/NAME".
class MomentumOptimizer : public Optimizer {
 public:
  MomentumOptimizer(std::vector<ParameterGroup> groups, ComputeDevice& device);

  void set_learning_rate(double rate) override { rate_.set(rate); }
  void list_state(StateTable& table) const override;
  void forget_gradients() override;
  void take_gradients(std::vector<ParameterGroup> groups) override;

 protected:
  struct Part {
    ParameterGroup group;
    std::vector<at::Tensor> means;
  };
  /// Where one step takes a parameter: along `direction`, by the learning rate times `size`.
  struct Move {
    at::Tensor direction;
    double size = 1;
    at::Tensor mean;  ///< the next one
  };
  /// Of the gradient, already divided, and the mean so far.
  using Rule = std::function<Move(const at::Tensor& gradient, const at::Tensor& mean)>;

  /// Moves all parameters by the rule, with decoupled weight decay; where `skip` is 1 nothing is written.
  void move_all(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip,
                const Rule& rule);

  std::vector<Part>& parts() { return parts_; }
  const LearningRate& rate() const { return rate_; }

 private:
  ComputeDevice& device_;
  std::vector<Part> parts_;
  LearningRate rate_;
};

}  // namespace footplate
