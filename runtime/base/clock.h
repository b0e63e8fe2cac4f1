#pragma once

#include <chrono>

#include "runtime/base/scheduler.h"

namespace footplate {

/// The clock that control and collectives decide by: the machine's, or a scheduler's in tests. Its time
/// points are those of std::chrono::steady_clock.
struct SteadyClock {
  using Machine = std::chrono::steady_clock;
  using duration = Machine::duration;
  using rep = Machine::rep;
  using period = Machine::period;
  using time_point = Machine::time_point;
  static constexpr bool is_steady = true;

  static time_point now() {
    if (const Scheduler* scheduler = Scheduler::current()) [[unlikely]]
      return scheduler->now();
    return Machine::now();
  }
  /// As of the kernel's last tick, up to 4 ms ago, in a fifth of the time: for ages it will do.
  static time_point about_now();
};

void sleep_until(SteadyClock::time_point until);
inline void sleep_for(SteadyClock::duration time) {
  sleep_until(SteadyClock::now() + time);
}

/// The pauses of a loop that looks at what nobody can be told of, until it is done: at first only others run,
/// then they get longer, up to a millisecond. One object for one wait.
class PollPause {
 public:
  void pause();

 private:
  int looks_ = 0;
};

/// In a loop that looks for something until it is there: lets others run.
void look_again();

}  // namespace footplate
