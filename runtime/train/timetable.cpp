#include "runtime/train/timetable.h"

#include <chrono>

namespace footplate {
namespace {

unsigned bit(std::size_t kind) {
  return 1U << kind;
}

constexpr auto kLine = static_cast<std::size_t>(Recurring::log);

bool is_part_of_line(std::size_t kind) {
  return kind >= static_cast<std::size_t>(Recurring::data_sets);
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

void Timetable::again_in(Recurring what, double seconds, Clock::time_point now) {
  entries_[static_cast<std::size_t>(what)].again =
      now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

float Timetable::by_time(Clock::time_point now) const {
  unsigned due = 0;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Entry& entry = entries_[kind];
    const bool has_come =
        entry.every.seconds > 0 && now - entry.since >= std::chrono::duration<double>(entry.every.seconds);
    if (has_come || (entry.every.is_ever() && now >= entry.again)) due |= bit(kind);
  }
  return static_cast<float>(due);
}

bool Timetable::has_come(std::size_t kind, std::int64_t step, float by_time) const {
  const Interval& every = entries_[kind].every;
  return has(by_time, kind) || (every.seconds <= 0 && footplate::is_due(every.steps, step));
}

bool Timetable::has_line(std::int64_t step, float by_time) const {
  return !entries_[kLine].every.is_ever() || has_come(kLine, step, by_time);
}

bool Timetable::is_due(Recurring what, std::int64_t step, float by_time) const {
  const auto kind = static_cast<std::size_t>(what);
  if (!is_part_of_line(kind)) return has_come(kind, step, by_time);
  return (entries_[kind].waits || has_come(kind, step, by_time)) && has_line(step, by_time);
}

void Timetable::passed(std::int64_t step, float by_time, Clock::time_point now) {
  const bool line = has_line(step, by_time);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    Entry& entry = entries_[kind];
    if (is_part_of_line(kind)) entry.waits = !line && (entry.waits || has_come(kind, step, by_time));
    if (has_come(kind, step, by_time)) entry.again = Clock::time_point::max();
    if (has(by_time, kind)) entry.since = now;
  }
}

}  // namespace footplate
