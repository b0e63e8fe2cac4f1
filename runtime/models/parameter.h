#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace footplate {

/// A trained tensor: a leaf that requires a gradient, contiguous, never replaced.
struct Parameter {
  std::string name;  ///< "blocks.0.qkv.weight"
  at::Tensor tensor;
};

}  // namespace footplate
