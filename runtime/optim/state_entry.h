#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "runtime/device/compute_device.h"
#include "runtime/state/state_table.h"

namespace footplate {

/// A state entry of a contiguous float tensor of that device.
StateEntry state_entry(std::string name, const at::Tensor& tensor, ComputeDevice& device);

}  // namespace footplate
