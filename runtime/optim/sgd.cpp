#include "runtime/optim/sgd.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_fused_sgd.h>

namespace footplate {

void Sgd::step(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip) {
  const at::NoGradGuard no_grad;
  const bool has_momentum = settings.momentum > 0;
  for (Part& part : parts()) {
    if (part.group.values.empty()) continue;
    // Without momentum the kernel takes no means. They are zeros then, for the case that momentum comes back.
    if (!has_momentum) at::_foreach_mul_(part.means, skip);
    rate().with(part.group.lr_factor, [&](const auto& rate) {
      // Means begin as zeros, so the first step is one like all others.
      at::_fused_sgd_(part.group.values, part.group.gradients,
                      has_momentum ? at::TensorList(part.means) : at::TensorList(),
                      part.group.decay(settings.weight_decay), settings.momentum, rate, /*dampening=*/0.0,
                      settings.nesterov, /*maximize=*/false, /*is_first_step=*/false, divisor, skip);
    });
  }
}

}  // namespace footplate
