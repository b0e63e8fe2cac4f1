#include "runtime/orders/rule_hold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

TEST(RuleHoldTest, HoldsForTopicsWithABudgetUntilTheirRelease) {
  RuleHold hold;
  EXPECT_EQ(hold.begin(Topic::eval), 0U);
  hold.set_budgets({{{Topic::eval, 60'000.0}}});
  EXPECT_EQ(hold.begin(Topic::metrics), 0U);
  EXPECT_FALSE(hold.holds());
  const std::uint64_t id = hold.begin(Topic::eval);
  EXPECT_TRUE(hold.holds());
  EXPECT_GT(hold.until(), SteadyClock::now());
  EXPECT_FALSE(hold.release(id + 1));
  EXPECT_TRUE(hold.release(id));
  EXPECT_FALSE(hold.holds());
  EXPECT_FALSE(hold.end()) << "it was in time";
}

TEST(RuleHoldTest, EndsWithItsTopic) {
  RuleHold hold;
  hold.set_budgets({{{Topic::eval, 60'000.0}, {Topic::ckpt, 1.0}}});
  hold.begin(Topic::eval);
  EXPECT_FALSE(hold.set_budgets({{{Topic::eval, 1.0}}}));
  EXPECT_TRUE(hold.set_budgets({{{Topic::ckpt, 1.0}}}));
  EXPECT_FALSE(hold.holds());
}

TEST(RuleHoldTest, SaysOnceThatARuleWasLate) {
  RuleHold hold;
  hold.set_budgets({{{Topic::metrics, 5.0}}});
  hold.begin(Topic::metrics);
  const auto late = hold.end();
  ASSERT_TRUE(late);
  EXPECT_THAT(std::get<Warning>(late->data).text, ::testing::HasSubstr("sync = true on log took longer"));
  EXPECT_FALSE(hold.holds());
  hold.begin(Topic::metrics);
  EXPECT_FALSE(hold.end());
}

}  // namespace
}  // namespace footplate
