#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "runtime/models/parameter.h"
#include "runtime/train/state_table.h"
#include "runtime/train/step_settings.h"

namespace footplate {

/// AdamW (Loshchilov and Hutter 2019) through LibTorch's fused kernel: one pass over parameters,
/// gradients and moments. Weight decay acts on matrices alone.
class AdamW {
 public:
  explicit AdamW(const std::vector<Parameter>& parameters);

  /// One update with the parameters' grads, each divided by `gradient_divisor` on the way.
  void step(const StepSettings& settings, double learning_rate, float gradient_divisor);

  /// Adds the moments and the step counter; they stay where they are.
  void list_state(StateTable& table) const;

 private:
  /// Parameters that share a weight decay.
  struct Group {
    bool decays = false;
    std::vector<std::string> names;
    std::vector<at::Tensor> values, gradients, first_moments, second_moments, steps;
  };

  Group matrices_, others_;
  at::Tensor step_;     ///< updates done; one element, shared by all parameters
  at::Tensor divisor_;  ///< one element
};

/// A state entry of a contiguous float tensor.
StateEntry state_entry(std::string name, const at::Tensor& tensor);

}  // namespace footplate
