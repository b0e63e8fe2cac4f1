#include "runtime/control/replacement.h"

#include <gmock/gmock.h>

#include "tests/unit/control/coordinator_fixture.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A world whose joining rank does what the test says.
class FakeWorld final : public World {
 public:
  const Membership& members() const override { return members_; }
  bool broken() const override { return false; }
  Result<void> rebuild() override { return {}; }
  void invite(int number, const std::string&) override {
    invited.push_back(number);
    state = JoiningRank::coming;
  }
  JoiningRank joining_rank() const override { return state; }
  std::string guest_failure() const override { return "no slots are left"; }
  void dismiss() override { state = JoiningRank::none; }

  std::vector<int> invited;
  JoiningRank state = JoiningRank::none;

 private:
  Membership members_;
};

class ReplacementTest : public testing::CoordinatorFixture {
 protected:
  ReplacementTest() { replacement_.follow(settings("comm.replace", true)); }
  void pass(Clock::duration time) {
    now_ += time;
    replacement_.tick(now_);
  }

  Progress progress_;
  Gate gate_{schema_, Settings::defaults(schema_), progress_, [] {}};
  FakeWorld fake_;
  RankNumbers numbers_{.wanted = 4, .next = 7};
  Replacement replacement_{{&fake_, *channel_, gate_, coordinator_, numbers_, "today", "node1", report()}};
};

TEST_F(ReplacementTest, StartsOneProcessAndOrdersThatItIsLetIn) {
  pass(seconds(0));
  pass(seconds(1));
  EXPECT_THAT(fake_.invited, ElementsAre(7));
  EXPECT_EQ(numbers_.next, 8);
  EXPECT_THAT(reports_.at(0).second["text"].get<std::string>(),
              HasSubstr("1 of 4 ranks missing: another process is being started on host node1"));
  fake_.state = JoiningRank::ready;
  pass(seconds(1));
  pass(seconds(1));
  EXPECT_EQ(orders(), 1U);
  EXPECT_EQ(ordered(), "comm.admit");
  EXPECT_EQ(sent_.back()["order"]["calls"][0]["arguments"]["start"], "today");
}

TEST_F(ReplacementTest, OrdersAgainWhereTheOrderWasAborted) {
  fake_.state = JoiningRank::ready;
  pass(seconds(1));
  replacement_.note(testing::from_json<OrderReport>({{"id", 100}, {"state", "committed"}}));
  pass(seconds(1));
  EXPECT_EQ(coordinator_.open_orders().size(), 1U);
  replacement_.note(testing::from_json<OrderReport>({{"id", 100}, {"state", "aborted"}}));
  pass(seconds(1));
  EXPECT_EQ(coordinator_.open_orders().size(), 1U) << "after a pause, or it would be given all the time";
  pass(seconds(1));
  EXPECT_EQ(coordinator_.open_orders().size(), 2U);
}

TEST_F(ReplacementTest, ARefusedOrderOfSomebodyElseHoldsItUpNotAtAll) {
  fake_.state = JoiningRank::coming;
  pass(seconds(1));
  replacement_.note(testing::from_json<OrderReport>({{"id", 0}, {"state", "refused"}}));
  fake_.state = JoiningRank::ready;
  pass(seconds(0));
  EXPECT_EQ(coordinator_.open_orders().size(), 1U);
}

TEST_F(ReplacementTest, OrdersAgainAfterLongerAndLongerPauses) {
  fake_.state = JoiningRank::ready;
  std::uint64_t order = 100;
  for (const std::size_t pause : {1U, 2U, 4U}) {
    pass(seconds(0));
    replacement_.note(testing::from_json<OrderReport>({{"id", order++}, {"state", "refused"}}));
    const std::size_t before = coordinator_.open_orders().size();
    for (std::size_t i = 0; i < 100; ++i) pass(seconds(0));
    for (std::size_t i = 1; i < pause; ++i) pass(seconds(1));
    EXPECT_EQ(coordinator_.open_orders().size(), before);
    pass(seconds(1));
    EXPECT_EQ(coordinator_.open_orders().size(), before + 1);
  }
}

TEST_F(ReplacementTest, WaitsLongerAfterEachFailure) {
  for (const int pause : {1, 2, 4}) {
    pass(seconds(0));
    fake_.state = JoiningRank::failed;
    pass(seconds(0));
    EXPECT_THAT(reports_.back().second["text"].get<std::string>(),
                HasSubstr("no slots are left; tried again in " + std::to_string(pause) + " s"));
    const std::size_t invited = fake_.invited.size();
    pass(seconds(pause) - milliseconds(1));
    EXPECT_EQ(fake_.invited.size(), invited);
    now_ += milliseconds(1);
  }
}

TEST_F(ReplacementTest, DismissesAProcessThatIsNoLongerWanted) {
  fake_.state = JoiningRank::ready;
  replacement_.follow(settings("comm.replace", false));
  pass(seconds(1));
  EXPECT_EQ(fake_.state, JoiningRank::none);
  pass(seconds(1));
  EXPECT_TRUE(fake_.invited.empty());
}

TEST_F(ReplacementTest, StartsNobodyWhereAllRanksAreThere) {
  numbers_.wanted = 3;
  pass(seconds(1));
  EXPECT_TRUE(fake_.invited.empty());
}

}  // namespace
}  // namespace footplate
