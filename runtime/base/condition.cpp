#include "runtime/base/condition.h"

namespace footplate {

void Condition::notify_all() {
  if (Scheduler* scheduler = Scheduler::current()) return scheduler->notify_all(this);
  changed_.notify_all();
}

std::cv_status Condition::wait_until(MutexLock& lock, time_point deadline) {
  if (Scheduler* scheduler = Scheduler::current())
    return scheduler->wait(this, lock.underlying(), deadline) ? std::cv_status::no_timeout
                                                              : std::cv_status::timeout;
  if (deadline != time_point::max()) return changed_.wait_until(lock.underlying(), deadline);
  changed_.wait(lock.underlying());  // the standard library's arithmetic overflows on max()
  return std::cv_status::no_timeout;
}

}  // namespace footplate
