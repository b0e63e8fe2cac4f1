#include "console/lua/session/idle_priority.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <ctime>
#include <thread>

namespace footplate::test {
namespace {

using Seconds = lua::Allowance::Seconds;

Seconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// Processor time that a chunk which never ends had before its priority fell; `longest` where it didn't.
Seconds until_idle(lua::Allowance& allowance, Seconds longest) {
  Seconds used{};
  std::thread([&] {
    const lua::Allowance::Watch watch(allowance);
    while (sched_getscheduler(0) != SCHED_IDLE && processor_time() < longest) {
    }
    used = processor_time();
  }).join();
  return used;
}

// Under ThreadSanitizer a signal waits for the thread's next call that blocks.
#if !defined(__SANITIZE_THREAD__)

TEST(IdlePriority, OneChunkAfterAnotherUsesTheSameAllowance) {
  lua::Allowance allowance(Seconds(0.4));
  const Seconds first = until_idle(allowance, Seconds(4));
  EXPECT_GE(first, Seconds(0.35));
  EXPECT_LE(first, Seconds(2));
  // The second has only what came back meanwhile, or the least a chunk gets.
  EXPECT_LE(until_idle(allowance, Seconds(4)), Seconds(0.2));
}

TEST(IdlePriority, AShortChunkKeepsItsPriorityAndTheThreadsAfterItTheirs) {
  lua::Allowance allowance(Seconds(0.5));
  EXPECT_GE(until_idle(allowance, Seconds(0.1)), Seconds(0.1));
  std::thread([] { EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER); }).join();
}

#endif

}  // namespace
}  // namespace footplate::test
