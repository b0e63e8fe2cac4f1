#pragma once

// For tasks whose model is a torch::nn::Module: its parameters and buffers as footplate wants them.

#include <torch/nn/module.h>

#include <vector>

#include "footplate/task.h"

namespace footplate::v1 {

/// The module's parameters, in its order, by its names.
inline std::vector<Parameter> parameters_of(const torch::nn::Module& module) {
  std::vector<Parameter> list;
  for (const auto& one : module.named_parameters()) list.push_back({one.key(), one.value()});
  return list;
}

/// The module's float buffers (BatchNorm's running statistics), which forward writes while it trains. Buffers
/// of integers, as BatchNorm's count of batches, are left out: nothing that footplate does reads them.
inline std::vector<State> state_of(const torch::nn::Module& module) {
  std::vector<State> list;
  for (const auto& one : module.named_buffers())
    if (one.value().scalar_type() == at::kFloat)
      list.push_back({one.key(), one.value(), State::WrittenBy::forward});
  return list;
}

}  // namespace footplate::v1
