#include "runtime/optim/lion.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/where.h>

#include <cstddef>

namespace footplate {

void Lion::step(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip) {
  const at::NoGradGuard no_grad;
  const at::Tensor skips = skip.gt(0);
  for (Momenta& part : parts_) {
    const at::Tensor rate = rate_.tensor(part.group.lr_factor);
    const at::Tensor kept = rate.mul(-part.group.decay(settings.weight_decay)).add(1);
    for (std::size_t i = 0; i < part.means.size(); ++i) {
      at::Tensor& value = part.group.values[i];
      at::Tensor& mean = part.means[i];
      const at::Tensor gradient = part.group.gradients[i].div(divisor);
      const at::Tensor direction = at::lerp(gradient, mean, settings.beta1).sign_();
      value.copy_(at::where(skips, value, value.mul(kept).sub_(direction.mul_(rate))));
      mean.copy_(at::where(skips, mean, at::lerp(gradient, mean, settings.beta2)));
    }
  }
}

}  // namespace footplate
