#pragma once

#include <cstdint>

#include "protocol/settings.h"

namespace footplate {

/// What the learning rate is computed from.
struct Schedule {
  enum class Kind { cosine, linear, constant };
  Kind kind = Kind::cosine;
  double base_lr = 0.0;
  double min_lr = 0.0;
  std::int64_t warmup_steps = 0;
  std::int64_t steps = 0;  ///< train.steps: where it ends
  double lr_scale = 1.0;

  static Schedule from(const Settings& settings);
};

/// The learning rate of the step that follows `step` completed ones: linear warm-up to base_lr,
/// reached at the last warm-up step, then to min_lr at the last step; constant after that; times
/// lr_scale. A pure function: a changed setting acts on the whole curve.
double learning_rate(const Schedule& schedule, std::int64_t step);

}  // namespace footplate
