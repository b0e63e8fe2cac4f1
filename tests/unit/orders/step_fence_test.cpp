#include "runtime/orders/step_fence.h"

#include <gtest/gtest.h>

namespace footplate {
namespace {

TEST(StepFenceTest, LetsStepsPassUpToTheFenceAndToWhatIsDue) {
  Progress progress;
  StepFence fence(progress);
  EXPECT_FALSE(fence.passes(0)) << "nobody has said yet what is due";
  fence.set_next_due(10);
  EXPECT_TRUE(fence.passes(4));
  EXPECT_EQ(fence.propose(), 5);
  EXPECT_FALSE(fence.passes(5));
  EXPECT_TRUE(fence.blocks(5));
  EXPECT_FALSE(fence.blocks(4));
  fence.release();
  EXPECT_FALSE(fence.blocks(5));
  EXPECT_TRUE(fence.passes(9));
  EXPECT_FALSE(fence.passes(10));
}

TEST(StepFenceTest, StandsWhereTheTrainingThreadStands) {
  Progress progress;
  StepFence fence(progress);
  fence.set_next_due(10);
  EXPECT_TRUE(fence.passes(4));
  fence.put_at(4);
  EXPECT_TRUE(fence.blocks(4));
  EXPECT_FALSE(fence.passes(4));
}

}  // namespace
}  // namespace footplate
