#include "runtime/orders/running_call.h"

#include <gtest/gtest.h>

namespace footplate {
namespace {

TEST(RunningCallTest, KnowsWhetherTheCallThatRunsWasCancelled) {
  RunningCall running;
  running.cancel(4, 1);
  running.cancel();
  EXPECT_FALSE(running.is_cancelled()) << "nothing runs";
  running.begin(4, 0);
  EXPECT_TRUE(running.is_of(4));
  EXPECT_FALSE(running.is_cancelled());
  running.begin(4, 1);
  EXPECT_TRUE(running.is_cancelled()) << "before it began";
  running.end();
  EXPECT_FALSE(running.is_cancelled());
  running.begin(5, 0);
  running.cancel();
  EXPECT_TRUE(running.is_cancelled());
}

TEST(RunningCallTest, DefersTheCallThatRuns) {
  RunningCall running;
  EXPECT_FALSE(running.defer()) << "nothing runs";
  running.begin(4, 1, "ckpt.save");
  const auto deferred = running.defer();
  ASSERT_TRUE(deferred);
  EXPECT_EQ(deferred->order, 4U);
  EXPECT_EQ(deferred->call, 1U);
  EXPECT_EQ(deferred->action, "ckpt.save");
  EXPECT_TRUE(running.is_deferred());
  running.begin(4, 2);
  EXPECT_FALSE(running.is_deferred());
}

TEST(RunningCallTest, ForgetsTheCallsOfOneOrder) {
  RunningCall running;
  for (std::uint64_t order = 3; order <= 5; ++order)
    for (std::size_t call = 0; call < 2; ++call) running.cancel(order, call);
  running.forget(4);
  for (std::size_t call = 0; call < 2; ++call) {
    running.begin(3, call);
    EXPECT_TRUE(running.is_cancelled());
    running.begin(4, call);
    EXPECT_FALSE(running.is_cancelled());
    running.begin(5, call);
    EXPECT_TRUE(running.is_cancelled());
  }
}

}  // namespace
}  // namespace footplate
