// Orders on whole ranks: real control threads and gates over SimWorld.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "tests/unit/control/sim_run.h"

namespace footplate::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Every rank applied the same changes at the same steps, and trained each step with the same values.
void expect_same_on_all_ranks(const SimRun& run, int count) {
  for (int rank = 1; rank < count; ++rank) {
    EXPECT_EQ(run.record(rank).changes, run.record(0).changes) << "rank " << rank;
    EXPECT_EQ(run.record(rank).batches_used, run.record(0).batches_used) << "rank " << rank;
    EXPECT_EQ(run.record(rank).calls, run.record(0).calls) << "rank " << rank;
    EXPECT_EQ(run.record(rank).end_step, run.record(0).end_step) << "rank " << rank;
  }
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kShare = 12;  ///< of the 10,000, a part of them under a sanitizer
#else
constexpr int kShare = 1;
#endif

struct Storm {
  int ranks;
  int orders;
  microseconds max_delay;
  int pauses;  ///< of random ranks, 1-20 ms each
  bool take_turns = kTakeTurns;
};

/// Numbered orders at random moments, some with a target a little ahead.
void expect_each_order_once(const Storm& storm, std::uint64_t seed) {
  SimRun::Options options;
  options.ranks = storm.ranks;
  options.world.seed = seed;
  options.world.max_delay = storm.max_delay;
  options.take_turns = storm.take_turns;
  SimRun run(options);
  std::mt19937_64 random(seed);
  for (int i = 1; i <= storm.orders; ++i) {
    Json more = Json::object();
    if (random() % 8 == 0) more["at_step"] = run.step(0) + static_cast<std::int64_t>(random() % 200);
    run.order(std::to_string(i), {{"eval.batches", i}}, Json::array(), more);
    if (storm.pauses > 0 && i % (storm.orders / storm.pauses) == 0)
      run.world().pause(static_cast<int>(random() % static_cast<unsigned>(storm.ranks)),
                        SimWorld::Clock::now() + milliseconds(1 + random() % 20));
    // At most so many on their way: fewer than rank 0's queue holds.
    if (i > 48) {
      ASSERT_FALSE(run.wait_for_order(std::to_string(i - 48), "committed").is_null()) << i;
    }
    if (random() % 4 == 0) sleep_for(microseconds(random() % 1000));
  }
  for (int i = 1; i <= storm.orders; ++i) {
    const Json report = run.wait_for_order(std::to_string(i), "applied");
    ASSERT_FALSE(report.is_null()) << i;
    EXPECT_EQ(report["applied"]["ranks"], storm.ranks) << report;
    EXPECT_FALSE(report.contains("error")) << report;
  }
  run.stop();
  expect_same_on_all_ranks(run, storm.ranks);
  std::map<std::int64_t, int> times;
  for (const auto& change : run.record(0).changes) ++times[change.batches];
  EXPECT_EQ(times.size(), static_cast<std::size_t>(storm.orders));
  for (const auto& [order, count] : times) EXPECT_EQ(count, 1) << order;
}

class OrderStorm : public ::testing::TestWithParam<Storm> {};

TEST_P(OrderStorm, AppliesEachOrderOnceAtOneStepEverywhere) {
  expect_each_order_once(GetParam(), 7);
}

INSTANTIATE_TEST_SUITE_P(Sim, OrderStorm,
                         ::testing::Values(Storm{2, 4000 / kShare, microseconds(0), 0},
                                           Storm{3, 3000 / kShare, microseconds(100), 20},
                                           Storm{4, 3000 / kShare, microseconds(300), 20}));

#ifndef __SANITIZE_THREAD__
/// Threads that run at the same time: the fence's store and load. Under that sanitizer all do.
INSTANTIATE_TEST_SUITE_P(SimInRealTime, OrderStorm,
                         ::testing::Values(Storm{2, 2000 / kShare, microseconds(0), 0, false},
                                           Storm{3, 1000 / kShare, microseconds(100), 20, false}));
#endif

TEST(OrderStorms, WithAnySeed) {
  const int seeds = (std::getenv("FOOTPLATE_FULL") != nullptr ? 2000 : 200) / kShare;
  for (int seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_each_order_once({2 + seed % 3, 20, microseconds(seed * 7 % 400), 4},
                           static_cast<std::uint64_t>(seed));
  }
}

}  // namespace
}  // namespace footplate::testing
