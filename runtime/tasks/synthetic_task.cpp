#include "runtime/tasks/synthetic_task.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <thread>

#include "runtime/data/sampler.h"

namespace footplate {
namespace {

/// Held-out samples are numbered like training samples, under a seed of their own.
constexpr std::uint64_t kHeldOutSeed = 0x48656c644f7574ULL;
constexpr std::int64_t kHeldOut = 256;
constexpr double kEpoch = 65536;

}  // namespace

v1::Declaration SyntheticTask::declare() {
  return {.unit = "samples", .uses = {"model.step_ms", "model.elements"}};
}

SyntheticTask::SyntheticTask(const v1::Host& host)
    : seed_(host.seed()), elements_(host.settings().integer("model.elements")), ranks_(host.world_size()) {
  values_ = at::zeros({elements_}, at::TensorOptions(at::kFloat).device(host.device()));
  values_.requires_grad_(true);
}

void SyntheticTask::changed(const v1::Values& now, std::int64_t /*step*/) {
  const std::int64_t batch = now.integer("train.batch_size");
  const std::int64_t largest_slice = std::max<std::int64_t>(1, (batch + ranks_ - 1) / ranks_);
  per_sample_ =
      std::chrono::duration<double>(now.number("model.step_ms") / 1e3 / static_cast<double>(largest_slice));
}

std::vector<v1::DataSet> SyntheticTask::data() {
  return {{.name = "synthetic", .held_out = kHeldOut, .order = v1::Order::counted, .epoch = kEpoch}};
}

/// The sum of the samples' gradients.
v1::Batch SyntheticTask::load(const v1::Samples& samples) {
  const std::uint64_t seed = samples.held_out ? seed_ ^ kHeldOutSeed : seed_;
  at::Tensor gradients = at::zeros({elements_}, at::kFloat);
  float* sum = gradients.mutable_data_ptr<float>();
  for (const std::int64_t number : samples.indexes) {
    const std::uint64_t sample = counter_hash(seed, static_cast<std::uint64_t>(number));
    for (std::int64_t element = 0; element < elements_; ++element) {
      const auto byte = static_cast<int>(counter_hash(sample, static_cast<std::uint64_t>(element)) >> 56);
      sum[element] += static_cast<float>(byte - 128) / 128.0F;
    }
  }
  return {.tensors = {std::move(gradients)}, .weight = static_cast<double>(samples.indexes.size())};
}

at::Tensor SyntheticTask::loss(const v1::Batch& batch, v1::Sums& /*sums*/) {
  std::this_thread::sleep_for(per_sample_ * batch.weight);
  return values_.dot(batch.tensors[0]);
}

}  // namespace footplate
