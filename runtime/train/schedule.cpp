#include "runtime/train/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "protocol/value.h"
#include "protocol/words.h"

namespace footplate {
namespace {

constexpr std::array kSettings{"sched.kind",        "sched.base_lr", "sched.min_lr", "sched.warmup_steps",
                               "sched.decay_steps", "sched.every",   "sched.gamma",  "sched.points"};

double cosine_height(double part) {
  return 0.5 * (1.0 + std::cos(std::numbers::pi * part));
}

/// Straight lines between the points.
double rate_by_points(const std::vector<double>& points, double number) {
  constexpr std::size_t kPair = 2;
  for (std::size_t i = 0; i + 1 < points.size(); i += kPair) {
    if (number > points[i]) continue;
    if (i == 0 || number == points[i]) return points[i + 1];
    const double part = (number - points[i - 2]) / (points[i] - points[i - 2]);
    return points[i - 1] + (points[i + 1] - points[i - 1]) * part;
  }
  return points.back();
}

/// `after`: the step's number after the warm-up, from 1; `length`: how many there are.
double rate_after_warmup(const Schedule& schedule, double after, double length) {
  constexpr double kThird = 3, kFifth = 5;
  const double part = length > 0 ? std::clamp(after / length, 0.0, 1.0) : 1.0;
  const double every =
      std::max(1.0, schedule.every > 0 ? static_cast<double>(schedule.every) : length / kThird);
  double height = 1.0;  // of the way from min_lr to base_lr
  switch (schedule.kind) {
    case Schedule::Kind::constant:
      break;
    case Schedule::Kind::cosine:
      height = cosine_height(part);
      break;
    case Schedule::Kind::linear:
      height = 1.0 - part;
      break;
    case Schedule::Kind::wsd: {
      const double decay = std::max(
          1.0, schedule.decay_steps > 0 ? static_cast<double>(schedule.decay_steps) : length / kFifth);
      height = std::clamp((length - after) / decay, 0.0, 1.0);
      break;
    }
    case Schedule::Kind::step: {
      const double last = schedule.every > 0 ? after : std::min(after, length);
      const double drops = std::max(0.0, std::floor((last - 1) / every));
      return std::max(schedule.min_lr, schedule.base_lr * std::pow(schedule.gamma, drops));
    }
    case Schedule::Kind::restarts:
      height =
          schedule.every == 0 && part >= 1 ? 0 : cosine_height((std::fmod(after - 1, every) + 1) / every);
      break;
  }
  return schedule.min_lr + (schedule.base_lr - schedule.min_lr) * height;
}

}  // namespace

Schedule Schedule::from(const Settings& settings) {
  return {choice_of<Kind>(settings, "sched.kind"), settings.number("sched.base_lr"),
          settings.number("sched.min_lr"),         settings.integer("sched.warmup_steps"),
          settings.integer("train.steps"),         settings.number("optim.lr_scale"),
          settings.integer("sched.decay_steps"),   settings.integer("sched.every"),
          settings.number("sched.gamma"),          settings.numbers("sched.points")};
}

double learning_rate(const Schedule& schedule, std::int64_t step) {
  const double number = static_cast<double>(step + 1);
  if (!schedule.points.empty()) return schedule.lr_scale * rate_by_points(schedule.points, number);
  const double warmup = static_cast<double>(schedule.warmup_steps);
  if (number <= warmup) return schedule.lr_scale * schedule.base_lr * number / warmup;
  const double length = static_cast<double>(schedule.steps) - warmup;
  return schedule.lr_scale * rate_after_warmup(schedule, number - warmup, length);
}

std::string warmup_warning(const Schedule& schedule) {
  if (!schedule.points.empty() || schedule.warmup_steps <= schedule.steps) return {};
  const double highest =
      schedule.base_lr * static_cast<double>(schedule.steps) / static_cast<double>(schedule.warmup_steps);
  return "sched.warmup_steps (" + std::to_string(schedule.warmup_steps) +
         ") is longer than the run (train.steps " + std::to_string(schedule.steps) +
         "): the learning rate rises to the end, to " + shortest(highest) + " instead of sched.base_lr (" +
         shortest(schedule.base_lr) + ")";
}

std::string unused_schedule_warning(const Settings& settings, const std::string& name) {
  std::vector<std::string> set;
  for (const char* one : kSettings)
    if (settings.source(one) != "default") set.emplace_back(one);
  if (set.empty()) return {};
  return join(set) + (set.size() == 1 ? " changes" : " change") + " nothing now: run.task = \"" + name +
         "\" decides its learning rate itself. optim.lr_scale multiplies it";
}

}  // namespace footplate
