#include "runtime/train/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <stdexcept>

namespace footplate {

AdamW::AdamW(const std::vector<Parameter>& parameters, const std::vector<v1::Group>& groups,
             ComputeDevice& device)
    : device_(device),
      step_(at::zeros({}, at::TensorOptions(at::kFloat).device(device.where()))),
      rate_(at::zeros_like(step_)) {
  groups_.resize(2);
  groups_[0].decays = true;
  for (const Parameter& parameter : parameters) {
    Group& group = group_of(parameter, groups);
    const at::Tensor value = parameter.tensor.detach();
    group.names.push_back(parameter.name);
    group.values.push_back(value);
    group.gradients.push_back(parameter.tensor.grad());
    group.first_moments.push_back(at::zeros_like(value));
    group.second_moments.push_back(at::zeros_like(value));
    group.steps.push_back(step_);
  }
}

AdamW::Group& AdamW::group_of(const Parameter& parameter, const std::vector<v1::Group>& declared) {
  const bool is_matrix = parameter.tensor.dim() >= 2;
  if (parameter.group.empty()) return groups_[is_matrix ? 0 : 1];
  const auto found = std::ranges::find(declared, parameter.group, &v1::Group::name);
  if (found == declared.end())
    throw std::invalid_argument("the parameter '" + parameter.name + "' is in the group '" + parameter.group +
                                "', and groups() has none of that name");
  const bool decays = !found->weight_decay && is_matrix;
  for (Group& group : groups_)
    if (group.decays == decays && group.own_decay == found->weight_decay &&
        group.lr_factor == found->lr_factor)
      return group;
  Group& group = groups_.emplace_back();
  group.decays = decays;
  group.own_decay = found->weight_decay;
  group.lr_factor = found->lr_factor;
  return group;
}

void AdamW::set_learning_rate(double rate) {
  learning_rate_ = rate;
  if (!device_.is_host()) rate_.fill_(rate);
}

void AdamW::step(const StepSettings& settings, const at::Tensor& divisor, const at::Tensor& skip) {
  const at::NoGradGuard no_grad;
  step_.add_(1).sub_(skip);
  for (Group& group : groups_)
    if (!group.values.empty()) update(group, settings, divisor, skip);
}

void AdamW::update(Group& group, const StepSettings& settings, const at::Tensor& divisor,
                   const at::Tensor& skip) {
  const double decay = group.own_decay.value_or(group.decays ? settings.weight_decay : 0.0);
  const auto with_rate = [&](const auto& rate) {
    at::_fused_adamw_(group.values, group.gradients, group.first_moments, group.second_moments, {},
                      group.steps, rate, settings.beta1, settings.beta2, decay, settings.eps,
                      /*amsgrad=*/false, /*maximize=*/false, divisor, skip);
  };
  if (device_.is_host())
    with_rate(learning_rate_ * group.lr_factor);
  else
    with_rate(group.lr_factor == 1 ? rate_ : rate_.mul(group.lr_factor));
}

void AdamW::list_state(StateTable& table) const {
  for (const Group& group : groups_) {
    for (std::size_t i = 0; i < group.names.size(); ++i) {
      table.add(state_entry("optim/exp_avg/" + group.names[i], group.first_moments[i], device_));
      table.add(state_entry("optim/exp_avg_sq/" + group.names[i], group.second_moments[i], device_));
    }
  }
  table.add(state_entry("optim/step", step_, device_));
}

StateEntry state_entry(std::string name, const at::Tensor& tensor, ComputeDevice& device) {
  return {std::move(name),           DataType::float32, tensor.sizes().vec(), Placement::replicated,
          tensor.mutable_data_ptr(), tensor.nbytes(),   device.state_memory()};
}

}  // namespace footplate
