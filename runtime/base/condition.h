#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "runtime/base/clock.h"

namespace footplate {

/// std::condition_variable by SteadyClock; time_point::max() is no deadline. All who use one run under the
/// same scheduler, or under none.
class Condition {
 public:
  using Lock = std::unique_lock<std::mutex>;
  using time_point = SteadyClock::time_point;

  void notify_all();

  void wait(Lock& lock) { wait_until(lock, time_point::max()); }
  std::cv_status wait_until(Lock& lock, time_point deadline);

  template <class Predicate>
  void wait(Lock& lock, Predicate come) {
    while (!come()) wait(lock);
  }
  /// Whether it has come.
  template <class Predicate>
  bool wait_until(Lock& lock, time_point deadline, Predicate come) {
    while (!come())
      if (wait_until(lock, deadline) == std::cv_status::timeout) return come();
    return true;
  }
  template <class Predicate>
  bool wait_for(Lock& lock, SteadyClock::duration at_most, Predicate come) {
    return wait_until(lock, SteadyClock::now() + at_most, std::move(come));
  }

 private:
  std::condition_variable changed_;
};

}  // namespace footplate
