#pragma once

#include <chrono>
#include <condition_variable>

#include "protocol/mutex.h"
#include "runtime/base/clock.h"

namespace footplate {

/// std::condition_variable by SteadyClock; time_point::max() is no deadline. All who use one run under the
/// same scheduler, or under none. What a predicate reads is guarded by the lock's mutex: written
/// `[this]() REQUIRES(mutex_) { return done_; }`.
class Condition {
 public:
  using time_point = SteadyClock::time_point;

  void notify_all();

  void wait(MutexLock& lock) { wait_until(lock, time_point::max()); }
  std::cv_status wait_until(MutexLock& lock, time_point deadline);

  template <class Predicate>
  void wait(MutexLock& lock, Predicate come) NO_THREAD_SAFETY_ANALYSIS {
    while (!come()) wait(lock);
  }
  /// Whether it has come.
  template <class Predicate>
  bool wait_until(MutexLock& lock, time_point deadline, Predicate come) NO_THREAD_SAFETY_ANALYSIS {
    while (!come())
      if (wait_until(lock, deadline) == std::cv_status::timeout) return come();
    return true;
  }
  template <class Predicate>
  bool wait_for(MutexLock& lock, SteadyClock::duration at_most, Predicate come) {
    return wait_until(lock, SteadyClock::now() + at_most, std::move(come));
  }

 private:
  std::condition_variable changed_;
};

}  // namespace footplate
