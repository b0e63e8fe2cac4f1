#include "runtime/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace footplate {

Schedule Schedule::from(const Settings& settings) {
  const std::string& kind = settings.string("sched.kind");
  return {kind == "cosine"   ? Kind::cosine
          : kind == "linear" ? Kind::linear
                             : Kind::constant,
          settings.number("sched.base_lr"),
          settings.number("sched.min_lr"),
          settings.integer("sched.warmup_steps"),
          settings.integer("train.steps"),
          settings.number("optim.lr_scale")};
}

double learning_rate(const Schedule& schedule, std::int64_t step) {
  const double number = static_cast<double>(step + 1);
  const double warmup = static_cast<double>(schedule.warmup_steps);
  if (number <= warmup) return schedule.lr_scale * schedule.base_lr * number / warmup;

  const double length = static_cast<double>(schedule.steps) - warmup;
  const double part = length > 0 ? std::clamp((number - warmup) / length, 0.0, 1.0) : 1.0;
  double height = 1.0;  // of the way from min_lr to base_lr
  if (schedule.kind == Schedule::Kind::cosine) height = 0.5 * (1.0 + std::cos(std::numbers::pi * part));
  if (schedule.kind == Schedule::Kind::linear) height = 1.0 - part;
  return schedule.lr_scale * (schedule.min_lr + (schedule.base_lr - schedule.min_lr) * height);
}

}  // namespace footplate
