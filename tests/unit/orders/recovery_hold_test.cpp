#include "runtime/orders/recovery_hold.h"

#include <gtest/gtest.h>

namespace footplate {
namespace {

using Interrupted = StepGate::Interrupted;

TEST(RecoveryHoldTest, HoldsFromTheLossUntilItGoesOn) {
  RecoveryHold recovery;
  recovery.interrupt(Interrupted::save, "best");
  EXPECT_TRUE(recovery.holds());
  EXPECT_TRUE(recovery.is_whole());
  EXPECT_EQ(recovery.save_again(), "best");
  EXPECT_FALSE(recovery.is_decided());
  recovery.resume({.step = 7});
  EXPECT_TRUE(recovery.holds() && recovery.is_decided() && recovery.is_resumed());
  EXPECT_FALSE(recovery.save_again());
  EXPECT_EQ(recovery.take().step, 7);
  EXPECT_FALSE(recovery.holds() || recovery.is_resumed());
}

TEST(RecoveryHoldTest, AnotherLossTakesTheVerdictBack) {
  RecoveryHold recovery;
  recovery.hold();
  recovery.resume({.step = 7});
  recovery.hold_again();
  EXPECT_FALSE(recovery.is_decided());
}

TEST(RecoveryHoldTest, ASaveThatTheVerdictAsksForOutlivesAnotherLoss) {
  RecoveryHold recovery;
  recovery.interrupt(Interrupted::save, "best");
  recovery.resume({.step = 7, .save = true, .tag = "best"});
  recovery.hold_again();
  EXPECT_EQ(recovery.save_again(), "best");
}

TEST(RecoveryHoldTest, WhoIsBehindHasNoWholeStateUntilItIsLevel) {
  RecoveryHold recovery;
  recovery.hold();
  recovery.resume({.step = 7, .behind = true});
  EXPECT_TRUE(recovery.is_whole());
  recovery.take();
  EXPECT_FALSE(recovery.is_whole());
  recovery.interrupt(Interrupted::work, "");
  EXPECT_FALSE(recovery.is_whole());
  recovery.set_whole();
  recovery.interrupt(Interrupted::state, "");
  EXPECT_FALSE(recovery.is_whole());
}

TEST(RecoveryHoldTest, AnInterruptionIsOverOnceResumed) {
  RecoveryHold recovery;
  recovery.set_interruption("all_reduce #12 waits for rank 1");
  EXPECT_EQ(recovery.interruption(), "all_reduce #12 waits for rank 1");
  recovery.resume({});
  EXPECT_EQ(recovery.interruption(), "");
}

}  // namespace
}  // namespace footplate
