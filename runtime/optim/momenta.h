#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "runtime/device/compute_device.h"
#include "runtime/optim/parameter_group.h"
#include "runtime/state/state_table.h"

namespace footplate {

/// A group with one running mean of its gradients for each parameter: what sgd, lion and muon keep.
struct Momenta {
  ParameterGroup group;
  std::vector<at::Tensor> means;

  /// All zeros at first.
  static std::vector<Momenta> of(std::vector<ParameterGroup> groups);
  /// As "optim/momentum/NAME".
  static void list_state(const std::vector<Momenta>& parts, StateTable& table, ComputeDevice& device);
};

}  // namespace footplate
