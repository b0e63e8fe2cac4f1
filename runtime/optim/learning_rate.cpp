#include "runtime/optim/learning_rate.h"

#include <ATen/ops/zeros.h>

namespace footplate {

LearningRate::LearningRate(const ComputeDevice& device)
    : on_host_(device.is_host()),
      on_device_(at::zeros({}, at::TensorOptions(at::kFloat).device(device.where()))) {}

void LearningRate::set(double rate) {
  rate_ = rate;
  on_device_.fill_(rate);
}

}  // namespace footplate
