#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/settings.h"

namespace footplate {

/// What the learning rate is computed from.
struct Schedule {
  enum class Kind {
    cosine,
    linear,
    constant,
    wsd,       ///< warm-up, stable, decay: linear to min_lr in the last decay_steps
    step,      ///< times gamma every `every` steps, not below min_lr
    restarts,  ///< a cosine from base_lr to min_lr every `every` steps
  };
  Kind kind = Kind::cosine;
  double base_lr = 0.0;
  double min_lr = 0.0;
  std::int64_t warmup_steps = 0;
  std::int64_t steps = 0;  ///< train.steps: where it ends
  double lr_scale = 1.0;
  std::int64_t decay_steps = 0;     ///< 0: a fifth of the steps after the warm-up
  std::int64_t every = 0;           ///< 0: a third of them
  double gamma = 0.1;               ///< of Kind::step
  std::vector<double> points = {};  ///< step, rate, step, rate, …; not empty: they alone count

  static Schedule from(const Settings& settings);
};
template <>
struct EnumWords<Schedule::Kind> {
  using Kind = Schedule::Kind;
  static constexpr std::array kAll{std::pair{Kind::cosine, std::string_view("cosine")},
                                   std::pair{Kind::linear, std::string_view("linear")},
                                   std::pair{Kind::constant, std::string_view("constant")},
                                   std::pair{Kind::wsd, std::string_view("wsd")},
                                   std::pair{Kind::step, std::string_view("step")},
                                   std::pair{Kind::restarts, std::string_view("restarts")}};
};

/// The learning rate of the step that follows `step` completed ones: linear warm-up to base_lr, reached at
/// the last warm-up step, then what the kind says; or straight lines between the points, level before the
/// first and after the last. Times lr_scale. A pure function: a changed setting acts on the whole curve.
double learning_rate(const Schedule& schedule, std::int64_t step);

/// What to say of a warm-up that doesn't end before the run does; empty: it ends.
std::string warmup_warning(const Schedule& schedule);

/// What to say of those of sched.* that are set although the task `name` decides its learning rate itself;
/// empty: none is.
std::string unused_schedule_warning(const Settings& settings, const std::string& name);

}  // namespace footplate
