#pragma once

// For tasks whose model is a torch::nn::Module: its parameters and buffers as footplate wants them.

#include <torch/nn/module.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "footplate/task.h"

namespace footplate::v1 {

/// Each tensor once, by its first name: LibTorch lists what layers share (tied weights) by all its names.
inline std::vector<std::pair<std::string, at::Tensor>> each_once(
    const torch::OrderedDict<std::string, at::Tensor>& listed) {
  std::set<const void*> seen;
  std::vector<std::pair<std::string, at::Tensor>> once;
  for (const auto& one : listed)
    if (seen.insert(one.value().unsafeGetTensorImpl()).second) once.emplace_back(one.key(), one.value());
  return once;
}

/// The module's parameters, in its order, by its names.
inline std::vector<Parameter> parameters_of(const torch::nn::Module& module) {
  std::vector<Parameter> list;
  for (const auto& [name, tensor] : each_once(module.named_parameters())) list.push_back({name, tensor});
  return list;
}

/// The module's float buffers (BatchNorm's running statistics), which forward writes while it trains. Buffers
/// of integers, as BatchNorm's count of batches, are left out: nothing that footplate does reads them.
inline std::vector<State> state_of(const torch::nn::Module& module) {
  std::vector<State> list;
  for (const auto& [name, tensor] : each_once(module.named_buffers()))
    if (tensor.scalar_type() == at::kFloat) list.push_back({name, tensor, State::WrittenBy::forward});
  return list;
}

}  // namespace footplate::v1
