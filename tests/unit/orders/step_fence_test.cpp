#include "runtime/orders/step_fence.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

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
  fence.release(10);
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

/// A training thread that never stops by itself, against one that puts a fence, agrees on its step and
/// releases it: the step of an agreement is never passed.
TEST(StepFenceTest, NoStepPassesBetweenTheFenceAndWhatIsDueThere) {
  constexpr std::int64_t kNobody = 1'000'000'000'000;
  constexpr int kAgreements = 20'000;
  Progress progress;
  StepFence fence(progress);
  fence.set_next_due(kNobody);
  std::atomic<std::int64_t> agreed{kNobody}, stopped_at{-1};
  std::atomic<bool> over{false};
  std::atomic<std::int64_t> passed{0};
  std::thread training([&] {
    for (std::int64_t step = 0; !over;) {
      if (fence.passes(step)) {
        if (step >= agreed) ++passed;
        ++step;
      } else {
        stopped_at = step;
        std::this_thread::yield();
      }
    }
  });
  for (int i = 0; i < kAgreements && passed == 0; ++i) {
    const std::int64_t step = fence.propose();
    agreed = step;
    fence.release(step);
    while (stopped_at != step && passed == 0) std::this_thread::yield();
    agreed = kNobody;
    fence.set_next_due(kNobody);
  }
  over = true;
  training.join();
  EXPECT_EQ(passed, 0);
}

}  // namespace
}  // namespace footplate
