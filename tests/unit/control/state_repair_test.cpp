#include "runtime/control/state_repair.h"

#include <gmock/gmock.h>

#include "runtime/watch/event_parts.h"
#include "tests/unit/control/coordinator_fixture.h"

namespace footplate {
namespace {

class StateRepairTest : public testing::CoordinatorFixture {
 protected:
  void follow(const std::string& policy) { repair_.follow(settings("guard.on_mismatch", policy)); }
  void differ(std::int64_t step, const std::vector<int>& odd) {
    Warning difference = warning_at(WarningKind::state_hash, step, "the ranks differ");
    difference.ranks = odd;
    repair_.found(difference);
    repair_.tick(now_);
  }

  static CallReport repaired(std::uint64_t order, std::int64_t step) {
    return testing::from_json<CallReport>(
        {{"order", order}, {"action", "guard.repair"}, {"state", "done"}, {"result", {{"step", step}}}});
  }

  StateRepair repair_{{status_, coordinator_, *channel_}};
};

TEST_F(StateRepairTest, WarnsOnlyUnlessThePolicySaysMore) {
  follow("warn");
  differ(10, {1});
  EXPECT_EQ(orders(), 0U);
}

TEST_F(StateRepairTest, StopsWithoutASave) {
  follow("stop");
  differ(10, {1});
  EXPECT_EQ(ordered(), "run.stop");
  EXPECT_EQ(sent_.back()["order"]["calls"][0]["arguments"]["save"], false);
}

TEST_F(StateRepairTest, HasAllTakeTheStateOfTheFirstRankOfTheMajority) {
  follow("repair");
  differ(10, {0});
  EXPECT_EQ(ordered(), "guard.repair");
  EXPECT_EQ(sent_.back()["order"]["calls"][0]["arguments"]["source"], 1);
}

TEST_F(StateRepairTest, RepairsNothingWhereThereIsNoMajority) {
  follow("repair");
  differ(10, {0, 1, 2});
  EXPECT_EQ(orders(), 0U);
}

TEST_F(StateRepairTest, GivesOneOrderAtATimeAndPassesOverHashesFromBeforeTheRepair) {
  follow("repair");
  differ(10, {1});
  EXPECT_FALSE(status_.run_status(100, now_).notes.empty());
  differ(20, {1});
  EXPECT_EQ(orders(), 1U);
  repair_.note(
      testing::from_json<CallReport>({{"order", 100}, {"action", "guard.repair"}, {"state", "running"}}));
  repair_.note(testing::from_json<OrderReport>({{"id", 100}, {"state", "applied"}}));
  differ(20, {1});
  EXPECT_EQ(orders(), 1U);
  repair_.note(repaired(100, 25));
  EXPECT_TRUE(status_.run_status(100, now_).notes.empty());
  differ(20, {1});
  EXPECT_FALSE(coordinator_.open_orders().size() > 1) << "of before the repair";
  differ(30, {1});
  EXPECT_EQ(coordinator_.open_orders().size(), 2U);
}

TEST_F(StateRepairTest, KnowsWhoIsOddUntilAllHaveOneState) {
  follow("warn");
  differ(10, {0, 1, 2});
  EXPECT_TRUE(repair_.odd().empty()) << "no majority";
  EXPECT_FALSE(status_.run_status(100, now_).notes.empty());
  differ(20, {0});
  EXPECT_EQ(repair_.odd(), std::vector{0});
  repair_.change_world({-1, 2, 0});
  EXPECT_EQ(repair_.odd(), std::vector{2});
  repair_.note(testing::from_json<CallReport>(
      {{"order", 7}, {"action", "ckpt.save"}, {"state", "done"}, {"result", {{"step", 25}}}}));
  EXPECT_EQ(repair_.odd(), std::vector{2});
  repair_.note(repaired(8, 30));
  EXPECT_TRUE(repair_.odd().empty()) << "by people's own order";
  EXPECT_TRUE(status_.run_status(100, now_).notes.empty());
  differ(30, {1});
  EXPECT_TRUE(repair_.odd().empty()) << "of before the repair";
  EXPECT_TRUE(status_.run_status(100, now_).notes.empty());
  differ(40, {1});
  repair_.change_world({0, 2});
  EXPECT_TRUE(repair_.odd().empty()) << "it was lost";
  EXPECT_TRUE(status_.run_status(100, now_).notes.empty());
}

TEST_F(StateRepairTest, TriesAgainAfterAnOrderThatWasAborted) {
  follow("repair");
  differ(10, {1});
  repair_.note(testing::from_json<OrderReport>({{"id", 99}, {"state", "aborted"}}));
  differ(10, {1});
  EXPECT_EQ(coordinator_.open_orders().size(), 1U);
  repair_.note(testing::from_json<OrderReport>({{"id", 100}, {"state", "aborted"}}));
  differ(10, {1});
  EXPECT_EQ(coordinator_.open_orders().size(), 2U);
}

}  // namespace
}  // namespace footplate
