#include "runtime/base/clock.h"

#include <ctime>
#include <thread>

namespace footplate {
namespace {

/// A scheduler's time doesn't pass by itself.
constexpr std::chrono::microseconds kLook{40};

}  // namespace

SteadyClock::time_point SteadyClock::about_now() {
  if (const Scheduler* scheduler = Scheduler::current()) return scheduler->now();
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

void sleep_until(SteadyClock::time_point until) {
  if (Scheduler* scheduler = Scheduler::current()) return scheduler->sleep_until(until);
  std::this_thread::sleep_until(until);
}

void look_again() {
  if (Scheduler* scheduler = Scheduler::current()) return scheduler->sleep_until(scheduler->now() + kLook);
  std::this_thread::yield();
}

void PollPause::pause() {
  constexpr int kEager = 200;
  constexpr int kOften = 400;  // for some 4 ms
  constexpr std::chrono::microseconds kShort{20};
  constexpr std::chrono::milliseconds kLong{1};
  ++looks_;
  if (looks_ <= kEager)
    look_again();
  else
    sleep_for(looks_ <= kOften ? SteadyClock::duration(kShort) : SteadyClock::duration(kLong));
}

}  // namespace footplate
