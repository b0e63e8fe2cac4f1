#include "runtime/optim/momentum_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cstddef>
#include <utility>

#include "runtime/optim/state_entry.h"

namespace footplate {

MomentumOptimizer::MomentumOptimizer(std::vector<ParameterGroup> groups, ComputeDevice& device)
    : device_(device), rate_(device) {
  for (ParameterGroup& group : groups) {
    Part& part = parts_.emplace_back(Part{std::move(group), {}});
    for (const at::Tensor& value : part.group.values) part.means.push_back(at::zeros_like(value));
  }
}

void MomentumOptimizer::list_state(StateTable& table) const {
  for (const Part& part : parts_) {
    for (std::size_t i = 0; i < part.means.size(); ++i)
      table.add(state_entry("momentum", part.group, i, part.means[i], device_));
    add_elsewhere(table, "momentum", part.group);
  }
}

void MomentumOptimizer::forget_gradients() {
  for (Part& part : parts_) part.group.gradients.clear();
}

void MomentumOptimizer::take_gradients(std::vector<ParameterGroup> groups) {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    parts_[i].group.gradients = std::move(groups.at(i).gradients);
}

void MomentumOptimizer::move_all(const OptimizerSettings& settings, const at::Tensor& divisor,
                                 const at::Tensor& skip, const Rule& rule) {
  const at::NoGradGuard no_grad;
  const at::Tensor skips = skip.gt(0);
  for (Part& part : parts_) {
    const at::Tensor rate = rate_.tensor(part.group.lr_factor);
    const at::Tensor kept = rate.mul(-part.group.decay(settings.weight_decay)).add(1);
    for (std::size_t i = 0; i < part.means.size(); ++i) {
      at::Tensor& value = part.group.values[i];
      at::Tensor& mean = part.means[i];
      const Move move = rule(part.group.gradients[i].div(divisor), mean);
      const at::Tensor step = move.direction.mul(rate.mul(move.size));
      value.copy_(at::where(skips, value, value.mul(kept).sub_(step)));
      mean.copy_(at::where(skips, mean, move.mean));
    }
  }
}

}  // namespace footplate
