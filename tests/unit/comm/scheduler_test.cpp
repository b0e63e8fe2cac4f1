#include "runtime/comm/sim/sim_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "runtime/base/condition.h"
#include "runtime/base/thread.h"

namespace footplate {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The order in which three threads get through ten passes each.
std::string race(std::uint64_t seed, std::string* trace = nullptr) {
  SimScheduler scheduler(seed);
  std::string order;
  std::vector<Thread> threads;
  for (const char letter : {'a', 'b', 'c'})
    threads.emplace_back("racer", [&scheduler, &order, letter] {
      for (int i = 0; i < 10; ++i) {
        order += letter;
        scheduler.note(std::string("passes ") + letter);
        scheduler.pass();
      }
    });
  for (auto& thread : threads) thread.join();
  if (trace != nullptr) *trace = scheduler.trace();
  return order;
}

TEST(SimSchedulerTest, TheSeedChoosesWhoGoesOn) {
  std::string first, again, other;
  EXPECT_EQ(race(1, &first), race(1, &again));
  EXPECT_EQ(first, again);
  EXPECT_NE(race(2, &other), race(1));
  EXPECT_NE(first, other);
  EXPECT_THAT(first, HasSubstr("racer      passes a"));
}

TEST(SimSchedulerTest, TimeIsAsLateAsTheFirstWhoWaits) {
  SimScheduler scheduler(1);
  const auto began = SteadyClock::now();
  std::vector<std::string> woken;
  Thread late("late", [&] {
    sleep_until(began + hours(2));
    woken.emplace_back("late");
  });
  Thread soon("soon", [&] {
    sleep_until(began + milliseconds(1));
    woken.emplace_back("soon");
  });
  late.join();
  soon.join();
  EXPECT_THAT(woken, ElementsAre("soon", "late"));
  EXPECT_GE(SteadyClock::now(), began + hours(2));
  EXPECT_LT(SteadyClock::now(), began + hours(2) + milliseconds(1));
}

TEST(SimSchedulerTest, AConditionIsNotifiedOrItsDeadlineComes) {
  SimScheduler scheduler(1);
  Mutex mutex;
  Condition changed;
  bool set = false;
  Thread setter("setter", [&] {
    sleep_for(microseconds(500));
    const MutexLock lock(mutex);
    set = true;
    changed.notify_all();
  });
  MutexLock lock(mutex);
  const auto began = SteadyClock::now();
  EXPECT_FALSE(changed.wait_for(lock, microseconds(100), [&] { return set; }));
  EXPECT_LT(SteadyClock::now(), began + microseconds(200));
  EXPECT_TRUE(changed.wait_for(lock, hours(1), [&] { return set; }));
  EXPECT_LT(SteadyClock::now(), began + milliseconds(1));
  lock.unlock();
  setter.join();
}

/// A thread that is always ready doesn't keep the others' time from coming.
TEST(SimSchedulerTest, TimePassesWhileSomebodyIsReady) {
  SimScheduler scheduler(1);
  std::atomic<bool> over{false};
  Thread busy("busy", [&] {
    while (!over) scheduler.pass();
  });
  sleep_for(milliseconds(1));
  over = true;
  busy.join();
}

TEST(SimSchedulerDeathTest, SaysWhoWaitsWhereNobodyCanGoOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto wait_for_ever = [] {
    SimScheduler scheduler(7);
    Mutex mutex;
    Condition never;
    Thread waiter("waiter", [&] {
      MutexLock lock(mutex);
      never.wait(lock);
    });
    waiter.join();
  };
  EXPECT_DEATH(wait_for_ever(), "no thread can go on:\n  0 test waits\n  1 waiter waits\nseed 7");
}

TEST(SimSchedulerTest, WithoutOneTheClockIsTheMachines) {
  const auto before = std::chrono::steady_clock::now();
  const auto now = SteadyClock::now();
  EXPECT_GE(now, before);
  EXPECT_LE(now, std::chrono::steady_clock::now());
  EXPECT_EQ(Scheduler::current(), nullptr);
}

}  // namespace
}  // namespace footplate
