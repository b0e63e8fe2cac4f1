#include "runtime/orders/rule_hold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

TEST(RuleHoldTest, HoldsForTopicsWithABudgetUntilTheirRelease) {
  RuleHold hold;
  EXPECT_EQ(hold.begin("eval"), 0U);
  hold.set_budgets({{"eval", 60'000.0}});
  EXPECT_EQ(hold.begin("metrics"), 0U);
  EXPECT_FALSE(hold.holds());
  const std::uint64_t id = hold.begin("eval");
  EXPECT_TRUE(hold.holds());
  EXPECT_GT(hold.until(), SteadyClock::now());
  EXPECT_FALSE(hold.release(id + 1));
  EXPECT_TRUE(hold.release(id));
  EXPECT_FALSE(hold.holds());
  EXPECT_FALSE(hold.end()) << "it was in time";
}

TEST(RuleHoldTest, EndsWithItsTopic) {
  RuleHold hold;
  hold.set_budgets({{"eval", 60'000.0}, {"ckpt", 1.0}});
  hold.begin("eval");
  EXPECT_FALSE(hold.set_budgets({{"eval", 1.0}}));
  EXPECT_TRUE(hold.set_budgets({{"ckpt", 1.0}}));
  EXPECT_FALSE(hold.holds());
}

TEST(RuleHoldTest, SaysOnceThatARuleWasLate) {
  RuleHold hold;
  hold.set_budgets({{"metrics", 5.0}});
  hold.begin("metrics");
  const auto late = hold.end();
  ASSERT_TRUE(late);
  EXPECT_THAT(late->data["text"].get<std::string>(), ::testing::HasSubstr("sync = true on log took longer"));
  EXPECT_FALSE(hold.holds());
  hold.begin("metrics");
  EXPECT_FALSE(hold.end());
}

}  // namespace
}  // namespace footplate
