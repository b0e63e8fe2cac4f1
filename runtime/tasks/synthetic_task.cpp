#include "runtime/tasks/synthetic_task.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <thread>

namespace footplate {
namespace {

/// Held-out samples are numbered like training samples, under a seed of their own.
constexpr std::uint64_t kHeldOutSeed = 0x48656c644f7574ULL;

}  // namespace

Result<std::unique_ptr<Task>> SyntheticTask::make(const Settings& settings, int world_size,
                                                  const ComputeDevice& device) {
  const std::int64_t batch = settings.integer("train.batch_size");
  const std::int64_t largest_slice = std::max<std::int64_t>(1, (batch + world_size - 1) / world_size);
  const Seconds per_sample(settings.number("model.step_ms") / 1e3 / static_cast<double>(largest_slice));
  return std::unique_ptr<Task>(new SyntheticTask(static_cast<std::uint64_t>(settings.integer("run.seed")),
                                                 settings.integer("model.elements"), per_sample, device));
}

SyntheticTask::SyntheticTask(std::uint64_t seed, std::int64_t elements, Seconds per_sample,
                             const ComputeDevice& device)
    : device_(device), seed_(seed), elements_(elements), per_sample_(per_sample) {
  at::Tensor values = at::zeros({elements}, at::TensorOptions(at::kFloat).device(device.where()));
  values.requires_grad_(true);
  parameters_.push_back({"values", std::move(values)});
}

/// The sum of the samples' gradients, and behind it how many they are.
template <class NumberOf>
at::Tensor SyntheticTask::gradients(std::uint64_t seed, std::int64_t count, NumberOf nth_number) const {
  at::Tensor batch = at::zeros({elements_ + 1}, at::kFloat);
  float* sum = batch.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t sample = counter_hash(seed, static_cast<std::uint64_t>(nth_number(i)));
    for (std::int64_t element = 0; element < elements_; ++element) {
      const auto byte = static_cast<int>(counter_hash(sample, static_cast<std::uint64_t>(element)) >> 56);
      sum[element] += static_cast<float>(byte - 128) / 128.0F;
    }
  }
  sum[elements_] = static_cast<float>(count);
  return batch;
}

at::Tensor SyntheticTask::load(Slice samples) {
  return gradients(seed_, samples.size(), [&](std::int64_t i) { return samples.first + i; });
}

at::Tensor SyntheticTask::load_held_out(std::span<const std::int64_t> samples) {
  return gradients(seed_ ^ kHeldOutSeed, static_cast<std::int64_t>(samples.size()),
                   [&](std::int64_t i) { return samples[static_cast<std::size_t>(i)]; });
}

at::Tensor SyntheticTask::loss(const at::Tensor& batch) {
  std::this_thread::sleep_for(per_sample_ * static_cast<double>(tokens(batch)));
  return parameters_[0].tensor.dot(device_.bring(batch.narrow(0, 0, elements_)));
}

std::int64_t SyntheticTask::tokens(const at::Tensor& batch) const {
  return static_cast<std::int64_t>(batch.const_data_ptr<float>()[elements_]);
}

}  // namespace footplate
