// Collectives that hang while all ranks live (comm.on_timeout, eval.on_timeout), in virtual time: hours are
// free.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/comm/sim/sim_scheduler.h"
#include "runtime/schema/schema_table.h"
#include "runtime/watch/collective_timeouts.h"
#include "runtime/watch/inquiry.h"
#include "tests/unit/control/recovery_run.h"

namespace footplate {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AddingRank;
using ::testing::AllOf;
using testing::expect_whole;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RecoveryRun;
using testing::show_trace;
using ::testing::SizeIs;

/// The deadline of whatever runs here is a second.
RecoveryRun::Values quick(RecoveryRun::Values more = {}) {
  RecoveryRun::Values values = {{"comm.small_timeout_s", 1.0}};
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

/// Rank `rank` comes so late to step `step` (-1: to a call's reduction), the first `times` times.
AddingRank::Late late_at(int rank, std::int64_t step, milliseconds by, int times) {
  return [=, left = std::make_shared<std::atomic<int>>(times)](int one, std::int64_t at) {
    if (one == rank && at == step && left->fetch_sub(1) > 0) sleep_for(by);
  };
}

std::vector<Json> warnings(RecoveryRun& run, const std::string& kind) {
  std::vector<Json> found;
  for (const Json& one : run.reports("warn"))
    if (one.value("kind", "") == kind) found.push_back(one);
  return found;
}

TEST(OnTimeoutTest, TheStepIsDoneAgain) {
  for (const int rank : {0, 1, 2}) {
    const SimScheduler scheduler(1);
    RecoveryRun run(3, {.max_lateness = microseconds(30)}, 200, quick(), late_at(rank, 50, seconds(20), 1));
    run.join(milliseconds(5));
    expect_whole(run, {}, 200);
    EXPECT_EQ(run.ranks[0]->worlds, (std::vector<std::pair<std::int64_t, int>>{{50, 3}}));
    const auto told = warnings(run, "timeout");
    ASSERT_THAT(told, SizeIs(1));
    EXPECT_EQ(told[0]["action"], "rebuild");
    EXPECT_THAT(told[0]["text"].get<std::string>(),
                AllOf(HasSubstr("of gradients (2 float64) is past its deadline of 1 s"),
                      HasSubstr("waits for rank " + std::to_string(rank))));
    const auto rebuilt = run.reports("rank");
    ASSERT_FALSE(rebuilt.empty());
    EXPECT_EQ(rebuilt.back()["state"], "rebuilt");
    EXPECT_THAT(rebuilt.back()["text"].get<std::string>(),
                AllOf(HasSubstr("communicators were rebuilt at step 50"), HasSubstr("waits for rank"),
                      HasSubstr("goes on with 3 ranks")));
    const auto awaited = warnings(run, "recovery");
    ASSERT_THAT(awaited, SizeIs(1)) << "the one that still sleeps holds all up, and is named";
    EXPECT_EQ(awaited[0]["ranks"], Json({rank}));
  }
}

TEST(OnTimeoutTest, ACallIsSkippedAtOnceAndEveryTime) {
  const SimScheduler scheduler(1);
  RecoveryRun run(3, {.max_lateness = microseconds(300)}, 1000000000, quick(),
                  late_at(1, -1, milliseconds(1500), 5));
  for (std::int64_t i = 1; i <= 6; ++i) {
    run.order(i, {{"calls", {{{"action", "eval.now"}, {"arguments", Json::object()}}}}});
    const auto over = [&] {
      const auto calls = run.reports("call");
      return std::count_if(calls.begin(), calls.end(), [](const Json& call) {
               return call["state"] == "failed" || call["state"] == "done";
             }) >= i;
    };
    run.await(over, milliseconds(5));
    run.wait_for_step(0, run.ranks[0]->now() + 3);
  }
  std::vector<std::string> errors;
  for (const Json& call : run.reports("call"))
    if (call["state"] == "failed") errors.push_back(call["error"]);
  ASSERT_THAT(errors, SizeIs(5)) << "the sixth is well";
  for (const std::string& error : errors)
    EXPECT_THAT(error, AllOf(HasSubstr("of call (1 float64)"), HasSubstr("waits for rank 1")));
  EXPECT_THAT(warnings(run, "timeout"), SizeIs(5));
  run.order(9, {{"calls", {{{"action", "run.stop"}, {"arguments", Json::object()}}}}});
  run.join(milliseconds(5));
  expect_whole(run, {}, run.ranks[0]->step);
}

TEST(OnTimeoutTest, WaitWaits) {
  const SimScheduler scheduler(1);
  RecoveryRun run(2, {.max_lateness = milliseconds(2)}, 200, quick({{"comm.on_timeout", "wait"}}),
                  late_at(1, 50, seconds(60), 1));
  run.join(milliseconds(5));
  expect_whole(run, {}, 200);
  EXPECT_THAT(run.ranks[0]->worlds, IsEmpty());
  EXPECT_THAT(warnings(run, "timeout"), IsEmpty());
  EXPECT_THAT(warnings(run, "collective"), SizeIs(2)) << "named, and over";
}

TEST(OnTimeoutTest, StopEndsAllRanks) {
  const SimScheduler scheduler(1);
  RecoveryRun run(3, {}, 200, quick({{"comm.on_timeout", "stop"}}), late_at(1, 50, seconds(20), 1));
  run.join(milliseconds(5));
  for (const auto& rank : run.ranks)
    EXPECT_THAT(rank->given_up,
                AllOf(HasSubstr("waits for rank 1"), HasSubstr("comm.on_timeout is \"stop\"")));
}

TEST(OnTimeoutTest, ADeadlineThatIsTooShortDoesNotRebuildForEver) {
  const SimScheduler scheduler(1);
  // Late at every step, and not stuck.
  RecoveryRun run(2, {}, 110, quick(), [](int rank, std::int64_t step) {
    if (rank == 1 && step >= 0) sleep_for(milliseconds(1500));
  });
  run.join(milliseconds(5));
  expect_whole(run, {}, 110);
  EXPECT_EQ(run.ranks[0]->worlds.size(), 2U) << "the second one waits long enough, for a hundred steps";
}

TEST(OnTimeoutTest, WhatHangsAgainAndAgainEndsTheRun) {
  const SimScheduler scheduler(1);
  RecoveryRun run(2, {}, 300, quick({{"comm.hard_limit_s", 0.0}}), late_at(1, 50, seconds(20), 1000));
  run.join(milliseconds(5));
  EXPECT_EQ(run.ranks[0]->worlds.size(), 3U);
  for (const auto& rank : run.ranks)
    EXPECT_THAT(rank->given_up, HasSubstr("3 rebuilds at this step didn't help"));
}

/// A rebuild waits for everybody: it isn't begun before all have answered.
TEST(OnTimeoutTest, NothingIsRebuiltWhileARankDoesNotAnswer) {
  const SimScheduler scheduler(1);
  RecoveryRun run(2, {}, 400, quick({{"comm.hard_limit_s", 0.0}}), late_at(1, 50, seconds(30), 1));
  run.wait_for_step(0, 49);
  run.await([&] { return run.ranks[1]->now() >= 50; });
  run.world.pause(1, SteadyClock::now() + seconds(10));
  const auto paused = SteadyClock::now();
  run.await([&] { return !warnings(run, "timeout").empty(); }, milliseconds(5));
  EXPECT_GE(SteadyClock::now() - paused, seconds(10));
  run.join(milliseconds(5));
  expect_whole(run, {}, 400);
}

/// Hangs, deaths and orders at random moments; every seed is one run.
void missing_storm(std::uint64_t seed) {
  const SimScheduler scheduler(seed);
  std::mt19937_64 random(seed);
  const int ranks = 2 + static_cast<int>(random() % 3);
  constexpr std::int64_t kSteps = 120;
  SimOptions options;
  options.seed = seed;
  options.max_delay = microseconds(random() % 100);
  options.max_lateness = microseconds(random() % 60);
  std::map<std::pair<int, std::int64_t>, milliseconds> hangs;
  for (int i = 1 + static_cast<int>(random() % 4); i > 0; --i)
    hangs[{static_cast<int>(random() % static_cast<std::uint64_t>(ranks)),
           static_cast<std::int64_t>(random() % kSteps)}] = milliseconds(random() % 4000);
  std::mutex mutex;
  const auto late = [&](int rank, std::int64_t step) {
    milliseconds by{0};
    {
      std::lock_guard lock(mutex);
      if (const auto hang = hangs.find({rank, step}); hang != hangs.end()) {
        by = hang->second;
        hangs.erase(hang);
      }
    }
    if (by.count() > 0) sleep_for(by);
  };
  RecoveryRun run(ranks, options, kSteps, quick(), late);
  std::set<int> dead;
  const int survivor = static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
  std::int64_t number = 100;
  for (int i = static_cast<int>(random() % 4); i > 0; --i) {
    sleep_for(milliseconds(random() % 1500));
    run.order(number++);
    if (random() % 2 == 0) continue;
    sleep_for(milliseconds(random() % 1500));
    const int victim = static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
    if (victim == survivor || !dead.insert(victim).second) continue;
    run.world.kill(victim);
  }
  run.join(milliseconds(5));
  for (int rank = 0; rank < ranks; ++rank)  // one that was killed after its end
    if (!run.world.is_dead(rank)) dead.erase(rank);
  expect_whole(run, dead, kSteps);
  if (::testing::Test::HasFailure()) show_trace();
}

TEST(OnTimeoutTest, HangsAndDeathsAtRandomMoments) {
  if (const char* only = std::getenv("FOOTPLATE_SEED"))
    return missing_storm(std::strtoull(only, nullptr, 10));
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr std::uint64_t kSeeds = 10;
#else
  constexpr std::uint64_t kSeeds = 100;
#endif
  for (std::uint64_t seed = 1; seed <= kSeeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    missing_storm(seed);
  }
}

}  // namespace
}  // namespace footplate
