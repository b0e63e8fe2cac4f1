#include "runtime/train/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace footplate {

AdamW::AdamW(const std::vector<Parameter>& parameters)
    : step_(at::zeros({}, at::kFloat)), divisor_(at::zeros({1}, at::kFloat)) {
  matrices_.decays = true;
  for (const Parameter& parameter : parameters) {
    Group& group = parameter.tensor.dim() >= 2 ? matrices_ : others_;
    const at::Tensor value = parameter.tensor.detach();
    group.names.push_back(parameter.name);
    group.values.push_back(value);
    group.gradients.push_back(parameter.tensor.grad());
    group.first_moments.push_back(at::zeros_like(value));
    group.second_moments.push_back(at::zeros_like(value));
    group.steps.push_back(step_);
  }
}

void AdamW::step(const StepSettings& settings, double learning_rate, float gradient_divisor) {
  const at::NoGradGuard no_grad;
  step_.add_(1);
  divisor_.fill_(gradient_divisor);
  for (Group* group : {&matrices_, &others_}) {
    if (group->values.empty()) continue;
    at::_fused_adamw_(group->values, group->gradients, group->first_moments, group->second_moments, {},
                      group->steps, learning_rate, settings.beta1, settings.beta2,
                      group->decays ? settings.weight_decay : 0.0, settings.eps, /*amsgrad=*/false,
                      /*maximize=*/false, divisor_, {});
  }
}

void AdamW::list_state(StateTable& table) const {
  for (const Group* group : {&matrices_, &others_}) {
    for (std::size_t i = 0; i < group->names.size(); ++i) {
      table.add(state_entry("optim/exp_avg/" + group->names[i], group->first_moments[i]));
      table.add(state_entry("optim/exp_avg_sq/" + group->names[i], group->second_moments[i]));
    }
  }
  table.add(state_entry("optim/step", step_));
}

StateEntry state_entry(std::string name, const at::Tensor& tensor) {
  return {std::move(name),       DataType::float32,         tensor.sizes().vec(),
          Placement::replicated, tensor.mutable_data_ptr(), tensor.nbytes()};
}

}  // namespace footplate
