#include "runtime/train/timetable.h"

#include <chrono>

namespace footplate {
namespace {

unsigned bit(std::size_t kind) {
  return 1U << kind;
}

bool has(float by_time, std::size_t kind) {
  return (static_cast<unsigned>(by_time) & bit(kind)) != 0;
}

}  // namespace

void Timetable::configure(const StepSettings& settings, Clock::time_point now) {
  const std::array<Interval, kKinds> every{
      settings.log_every,    settings.eval_every, settings.ckpt_every, settings.log_sets_every,
      settings.detail_every, settings.perf_every, settings.gpu_every};
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    if (entries_[kind].every != every[kind]) entries_[kind] = {every[kind], now};
}

float Timetable::by_time(Clock::time_point now) const {
  unsigned due = 0;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Entry& entry = entries_[kind];
    if (entry.every.seconds > 0 && now - entry.since >= std::chrono::duration<double>(entry.every.seconds))
      due |= bit(kind);
  }
  return static_cast<float>(due);
}

bool Timetable::is_due(Recurring what, std::int64_t step, float by_time) const {
  const auto kind = static_cast<std::size_t>(what);
  const Interval& every = entries_[kind].every;
  return every.seconds > 0 ? has(by_time, kind) : footplate::is_due(every.steps, step);
}

void Timetable::passed(float by_time, Clock::time_point now) {
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    if (has(by_time, kind)) entries_[kind].since = now;
}

}  // namespace footplate
