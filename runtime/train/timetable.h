#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/clock.h"
#include "runtime/train/step_settings.h"

namespace footplate {

/// What comes round after steps. From `data_sets` on it is a part of a line of metrics, and waits for the
/// next one of `log`; where that never comes, it comes by itself.
enum class Recurring { log, evaluation, checkpoint, data_sets, details, performance, gauges };

/// When it does: once in so many steps, or in so much time (Interval). By time the clock of rank 0 alone
/// decides. It says so in the sums of a step (StepSums::due), by which all ranks know it for the same step.
/// Parameters don't depend on it: a replay, whose clock is another, has the same. Training thread.
class Timetable {
 public:
  using Clock = SteadyClock;

  /// The settings in force; what has another interval than before begins anew.
  void configure(const StepSettings& settings, Clock::time_point now);

  /// After so many seconds it is also due by this rank's clock, once, if it isn't due before.
  void again_in(Recurring what, double seconds, Clock::time_point now);

  /// What is due by this rank's clock, for the step that begins: a sum of bits, exact as a float.
  float by_time(Clock::time_point now) const;

  /// Whether it is due after `step`, whose sums have `by_time` of rank 0.
  bool is_due(Recurring what, std::int64_t step, float by_time) const;

  /// Whether what is a part of a line may come after `step`.
  bool has_line(std::int64_t step, float by_time) const;

  /// What was due after `step` has been done or left out.
  void passed(std::int64_t step, float by_time, Clock::time_point now);

 private:
  static constexpr std::size_t kKinds = 7;
  struct Entry {
    Interval every;
    Clock::time_point since;  ///< the last time, or the beginning
    bool waits = false;       ///< its time has come, a line hasn't
    Clock::time_point again = Clock::time_point::max();
  };
  bool has_come(std::size_t kind, std::int64_t step, float by_time) const;

  std::array<Entry, kKinds> entries_;
};

}  // namespace footplate
