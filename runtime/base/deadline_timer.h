#pragma once

#include <chrono>
#include <functional>

#include "protocol/mutex.h"
#include "runtime/base/condition.h"
#include "runtime/base/thread.h"

namespace footplate {

/// Runs something on a thread of its own unless it is destroyed in time: a bound on what may never return.
class DeadlineTimer {
 public:
  DeadlineTimer(std::chrono::milliseconds after, std::function<void()> expire)
      : thread_("deadline timer", [this, after, expire = std::move(expire)] {
          MutexLock lock(mutex_);
          if (!changed_.wait_for(lock, after, [this]() REQUIRES(mutex_) { return cancelled_; })) expire();
        }) {}
  ~DeadlineTimer() {
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  DeadlineTimer(const DeadlineTimer&) = delete;
  DeadlineTimer& operator=(const DeadlineTimer&) = delete;

 private:
  Mutex mutex_;
  Condition changed_;
  bool cancelled_ GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses the members above
};

}  // namespace footplate
