#include "runtime/optim/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "runtime/optim/state_entry.h"

namespace footplate {

AdamW::AdamW(std::vector<ParameterGroup> groups, ComputeDevice& device)
    : device_(device),
      step_(at::zeros({}, at::TensorOptions(at::kFloat).device(device.where()))),
      rate_(device) {
  for (ParameterGroup& group : groups) {
    Part& part = parts_.emplace_back(Part{std::move(group), {}, {}, {}});
    for (const at::Tensor& value : part.group.values) {
      part.first_moments.push_back(at::zeros_like(value));
      part.second_moments.push_back(at::zeros_like(value));
      part.steps.push_back(step_);
    }
  }
}

void AdamW::step(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip) {
  const at::NoGradGuard no_grad;
  step_.add_(1).sub_(skip);
  for (Part& part : parts_) {
    if (part.group.values.empty()) continue;
    rate_.with(part.group.lr_factor, [&](const auto& rate) {
      at::_fused_adamw_(part.group.values, part.group.gradients, part.first_moments, part.second_moments, {},
                        part.steps, rate, settings.beta1, settings.beta2,
                        part.group.decay(settings.weight_decay), settings.eps,
                        /*amsgrad=*/false, /*maximize=*/false, divisor, skip);
    });
  }
}

void AdamW::forget_gradients() {
  for (Part& part : parts_) part.group.gradients.clear();
}

void AdamW::take_gradients(std::vector<ParameterGroup> groups) {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    parts_[i].group.gradients = std::move(groups.at(i).gradients);
}

void AdamW::list_state(StateTable& table) const {
  for (const Part& part : parts_) {
    for (std::size_t i = 0; i < part.group.names.size(); ++i) {
      table.add(state_entry("exp_avg", part.group, i, part.first_moments[i], device_));
      table.add(state_entry("exp_avg_sq", part.group, i, part.second_moments[i], device_));
    }
    for (const char* kind : {"exp_avg", "exp_avg_sq"}) add_elsewhere(table, kind, part.group);
  }
  table.add(state_entry("optim/step", step_, device_));
}

}  // namespace footplate
