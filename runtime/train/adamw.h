#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/device/compute_device.h"
#include "runtime/models/parameter.h"
#include "runtime/state/state_table.h"
#include "runtime/train/step_settings.h"

namespace footplate {

/// AdamW (Loshchilov and Hutter 2019) through LibTorch's fused kernel: one pass over parameters,
/// gradients and moments. Weight decay acts on matrices alone.
class AdamW {
 public:
  /// `groups`: those that parameters are in by name; one that isn't there throws std::invalid_argument.
  AdamW(const std::vector<Parameter>& parameters, const std::vector<v1::Group>& groups,
        ComputeDevice& device);

  /// Of the steps to come. On a device it has a place of its own there, which a recorded step reads.
  void set_learning_rate(double rate);

  /// Enqueues one update with the parameters' grads, each divided by `divisor` on the way; where `skip` is 1
  /// nothing is written. Both are single floats on the device: what comes of a step may be decided there.
  void step(const StepSettings& settings, const at::Tensor& divisor, const at::Tensor& skip);

  /// Adds the moments and the step counter; they stay where they are.
  void list_state(StateTable& table) const;

 private:
  /// Parameters that share a weight decay and a learning rate.
  struct Group {
    bool decays = false;              ///< by optim.weight_decay
    std::optional<double> own_decay;  ///< in place of it
    double lr_factor = 1;
    std::vector<std::string> names;
    std::vector<at::Tensor> values, gradients, first_moments, second_moments, steps;
  };

  void update(Group& group, const StepSettings& settings, const at::Tensor& divisor, const at::Tensor& skip);

  Group& group_of(const Parameter& parameter, const std::vector<v1::Group>& declared);

  ComputeDevice& device_;
  std::vector<Group> groups_;  ///< matrices and others of no declared group first
  at::Tensor step_;            ///< updates done; one element, shared by all parameters
  double learning_rate_ = 0;
  at::Tensor rate_;  ///< the same, on a device
};

/// A state entry of a contiguous float tensor of that device.
StateEntry state_entry(std::string name, const at::Tensor& tensor, ComputeDevice& device);

}  // namespace footplate
