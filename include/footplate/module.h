#pragma once

// For tasks whose model is a torch::nn::Module: its parameters and buffers as footplate wants them.

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include <set>
#include <stdexcept>
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

/// The module's parameters, in its order, by its names: those that require a gradient. Frozen ones are in no
/// checkpoint, unless the task lists them as states that nobody writes.
inline std::vector<Parameter> parameters_of(const torch::nn::Module& module) {
  std::vector<Parameter> list;
  for (const auto& [name, tensor] : each_once(module.named_parameters()))
    if (tensor.requires_grad()) list.push_back({name, tensor});
  return list;
}

/// Whether it is a BatchNorm whose running statistics are the mean over all batches so far (momentum:
/// nullopt), so that their number counts.
inline bool averages_all_batches(const torch::nn::Module& module) {
  const auto averages = [](const auto* norm) {
    return norm != nullptr && norm->options.track_running_stats() && !norm->options.momentum();
  };
  return averages(module.as<torch::nn::BatchNorm1dImpl>()) ||
         averages(module.as<torch::nn::BatchNorm2dImpl>()) ||
         averages(module.as<torch::nn::BatchNorm3dImpl>());
}

/// The module's float32 buffers (BatchNorm's running statistics), which forward writes while it trains.
/// Others are left out, as BatchNorm's count of batches: nothing reads it, except where there is no momentum.
/// Such a module throws std::invalid_argument.
inline std::vector<State> state_of(const torch::nn::Module& module) {
  std::vector<State> list;
  const auto check = [](const std::string& name, const torch::nn::Module& one) {
    if (averages_all_batches(one))
      throw std::invalid_argument("the BatchNorm '" + name +
                                  "' has no momentum: its statistics depend on the number of batches, which "
                                  "no checkpoint has. Give it "
                                  "one, as in momentum(0.1)");
  };
  check("", module);
  for (const auto& one : module.named_modules("", /*include_self=*/false)) check(one.key(), *one.value());
  for (const auto& [name, tensor] : each_once(module.named_buffers()))
    if (tensor.scalar_type() == at::kFloat) list.push_back({name, tensor, State::WrittenBy::forward});
  return list;
}

}  // namespace footplate::v1
