#pragma once

#include <algorithm>
#include <chrono>

#include "runtime/base/clock.h"
#include "runtime/base/times.h"

namespace footplate {

/// When to say for whom something waits: again and again, each time after twice the time, up to a bound.
class OrderPatience {
 public:
  using Clock = SteadyClock;
  OrderPatience(Clock::time_point now, const ControlTimes& times)
      : next_(now + times.waiting), interval_(times.waiting), most_(times.waiting_most) {}

  Clock::time_point next() const { return next_; }
  /// Whether it is to be said now.
  bool is_over(Clock::time_point now) {
    if (now < next_) return false;
    interval_ = std::min(2 * interval_, most_);
    next_ = now + interval_;
    return true;
  }

 private:
  Clock::time_point next_;
  std::chrono::milliseconds interval_;
  std::chrono::milliseconds most_;
};

}  // namespace footplate
