#pragma once

#include <chrono>

#include "footplate/task.h"

namespace footplate {

/// Nothing learned, for tests: a step sleeps model.step_ms instead of computing, and every sample has
/// a made-up gradient, a function of (seed, sample, element). Those are multiples of 1/128 in [-1, 1),
/// so their sums are exact and final parameters are bit-equal on any number of ranks; through AdamW
/// they depend on the exact step at which every learning rate was in force.
class SyntheticTask final : public v1::Task {
 public:
  static v1::Declaration declare();
  explicit SyntheticTask(const v1::Host& host);

  std::vector<v1::Parameter> parameters() override { return {{"values", values_}}; }
  std::vector<v1::DataSet> data() override;
  v1::Batch load(const v1::Samples& samples) override;
  at::Tensor loss(const v1::Batch& batch, v1::Sums& sums) override;
  void changed(const v1::Values& now, std::int64_t step) override;

 private:
  std::uint64_t seed_;
  std::int64_t elements_;
  const std::int64_t ranks_;
  std::chrono::duration<double> per_sample_{0};
  at::Tensor values_;
};

}  // namespace footplate
