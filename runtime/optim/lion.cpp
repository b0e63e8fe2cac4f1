#include "runtime/optim/lion.h"

#include <ATen/ops/lerp.h>

namespace footplate {

void Lion::step(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip) {
  move_all(settings, divisor, skip, [&](const at::Tensor& gradient, const at::Tensor& mean) {
    return Move{.direction = at::lerp(gradient, mean, settings.beta1).sign_(),
                .mean = at::lerp(gradient, mean, settings.beta2)};
  });
}

}  // namespace footplate
