#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>

#include "runtime/device/compute_device.h"
#include "runtime/optim/parameter_group.h"
#include "runtime/state/state_table.h"

namespace footplate {

/// A state entry of a contiguous tensor of that device: of float32, bfloat16, float64, int64, uint8 or
/// bool, which is kept as uint8.
StateEntry state_entry(std::string name, const at::Tensor& tensor, ComputeDevice& device);

/// What an optimizer keeps of the values of a group's place `i`: "optim/KIND/NAME", sharded where they are.
StateEntry state_entry(const std::string& kind, const ParameterGroup& group, std::size_t i,
                       const at::Tensor& tensor, ComputeDevice& device);

/// The values themselves: "model/NAME".
StateEntry value_entry(const ParameterGroup& group, std::size_t i, ComputeDevice& device);

/// What other ranks keep of the group, of which this one has nothing: shards without elements, so that all
/// ranks know of the same tensors.
void add_elsewhere(StateTable& table, const std::string& kind, const ParameterGroup& group);

}  // namespace footplate
