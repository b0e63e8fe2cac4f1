// Orders on whole ranks: real control threads and gates over SimWorld.

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/unit/control/sim_run.h"

namespace footplate::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

SimRun::Options ranks(int count) {
  SimRun::Options options;
  options.ranks = count;
  return options;
}

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
constexpr int kShare = 4;  ///< of the 10,000, a part of them under a sanitizer
#else
constexpr int kShare = 1;
#endif

struct Storm {
  int ranks;
  int orders;
  microseconds max_delay;
  int pauses;  ///< of random ranks, 1-20 ms each
};

class OrderStorm : public ::testing::TestWithParam<Storm> {};

/// Numbered orders at random moments, some with a target a little ahead.
TEST_P(OrderStorm, AppliesEachOrderOnceAtOneStepEverywhere) {
  const Storm storm = GetParam();
  auto options = ranks(storm.ranks);
  options.world.seed = 7;
  options.world.max_delay = storm.max_delay;
  SimRun run(options);
  std::mt19937_64 random(11);
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
    if (random() % 4 == 0) std::this_thread::sleep_for(microseconds(random() % 1000));
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

INSTANTIATE_TEST_SUITE_P(Sim, OrderStorm,
                         ::testing::Values(Storm{2, 4000 / kShare, microseconds(0), 0},
                                           Storm{3, 3000 / kShare, microseconds(100), 20},
                                           Storm{4, 3000 / kShare, microseconds(300), 20}));

}  // namespace
}  // namespace footplate::testing
