#pragma once

#include <chrono>

#include "runtime/tasks/task.h"

namespace footplate {

/// Nothing learned, for tests: a step sleeps model.step_ms instead of computing, and every sample has
/// a made-up gradient, a function of (seed, sample, element). Those are multiples of 1/128 in [-1, 1),
/// so their sums are exact and final parameters are bit-equal on any number of ranks; through AdamW
/// they depend on the exact step at which every learning rate was in force.
class SyntheticTask : public Task {
 public:
  static Result<std::unique_ptr<Task>> make(const Settings& settings, int world_size,
                                            const ComputeDevice& device);

  const std::vector<Parameter>& parameters() const override { return parameters_; }
  at::Tensor load(Slice samples) override;
  at::Tensor load_held_out(std::span<const std::int64_t> samples) override;
  std::int64_t held_out_samples() const override { return kHeldOut; }
  const ComputeDevice& device() const override { return device_; }
  at::Tensor loss(const at::Tensor& batch) override;
  std::int64_t tokens(const at::Tensor& batch) const override;
  double samples_per_epoch() const override { return kEpoch; }

 private:
  using Seconds = std::chrono::duration<double>;
  static constexpr std::int64_t kHeldOut = 256;
  static constexpr double kEpoch = 65536;

  SyntheticTask(std::uint64_t seed, std::int64_t elements, Seconds per_sample, const ComputeDevice& device);
  template <class NumberOf>
  at::Tensor gradients(std::uint64_t seed, std::int64_t count, NumberOf number_of) const;

  const ComputeDevice& device_;
  std::uint64_t seed_;
  std::int64_t elements_;
  Seconds per_sample_;
  std::vector<Parameter> parameters_;
};

}  // namespace footplate
