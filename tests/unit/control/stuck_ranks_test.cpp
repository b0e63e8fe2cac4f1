#include "runtime/control/stuck_ranks.h"

#include <gmock/gmock.h>

#include "tests/unit/control/coordinator_fixture.h"

namespace footplate {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class StuckRanksTest : public testing::CoordinatorFixture {
 protected:
  StuckRanksTest() {
    for (int rank = 0; rank < 3; ++rank) beat(rank, Phase::forward);
    stuck_.follow(settings("comm.hard_limit_s", 10.0));
  }
  void beat(int rank, Phase phase) {
    message::Beat beat;
    beat.host = "here";
    beat.pid = 500 + rank;
    beat.step = 8;
    beat.phase = phase;
    status_.beat(rank, beat, now_);
  }
  /// Only ranks 0 and 1 are heard of.
  void pass(Clock::duration time) {
    now_ += time;
    for (int rank = 0; rank < 2; ++rank) beat(rank, Phase::forward);
    status_.tick(now_);
    stuck_.tick(now_);
  }

  bool before_exit_ = false;
  StuckRanks stuck_{{status_, *channel_,
                     [this](const message::ToRanks& message) { sent_.push_back(to_json(message)); }, report(),
                     [this] { before_exit_ = true; }}};
};

TEST_F(StuckRanksTest, KillsASilentRankOnceItIsPastTheLimit) {
  for (int i = 0; i < 9; ++i) pass(seconds(1));
  EXPECT_TRUE(sent_.empty());
  for (int i = 0; i < 5; ++i) pass(seconds(1));
  ASSERT_EQ(sent_.size(), 1U) << "each process once";
  EXPECT_EQ(sent_[0], (Json{{"t", "die"}, {"rank", 2}, {"pid", 502}, {"host", "here"}}));
  EXPECT_THAT(reports_.at(0).second["text"].get<std::string>(),
              HasSubstr("killed past comm.hard_limit_s (10 s): rank 2"));
  EXPECT_FALSE(before_exit_);
}

TEST_F(StuckRanksTest, KillsNobodyWithoutALimit) {
  stuck_.follow(settings("comm.hard_limit_s", 0.0));
  for (int i = 0; i < 60; ++i) pass(seconds(1));
  stuck_.tick_recovery({1}, seconds(60), now_);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(StuckRanksTest, KillsWhomARecoveryWaitsForButNotOneThatSaves) {
  beat(1, Phase::saving);
  stuck_.tick_recovery({0, 1}, seconds(9), now_);
  EXPECT_TRUE(sent_.empty());
  stuck_.tick_recovery({0, 1}, seconds(11), now_);
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_[0]["rank"], 0);
  EXPECT_TRUE(before_exit_) << "this rank's records outlive it";
}

TEST_F(StuckRanksTest, KillsAgainInAnotherWorld) {
  stuck_.tick_recovery({1}, seconds(11), now_);
  stuck_.tick_recovery({1}, seconds(12), now_);
  EXPECT_EQ(sent_.size(), 1U);
  stuck_.change_world();  // with which the message may have been lost
  stuck_.tick_recovery({1}, seconds(11), now_);
  EXPECT_EQ(sent_.size(), 2U);
}

TEST_F(StuckRanksTest, DropsAnyRankButRankZero) {
  stuck_.drop(0, "ann", now_);
  stuck_.drop(3, "ann", now_);
  EXPECT_TRUE(sent_.empty());
  stuck_.drop(1, "ann", now_);
  EXPECT_EQ(sent_.at(0)["pid"], 501);
  EXPECT_THAT(reports_.at(0).second["text"].get<std::string>(), HasSubstr("killed by comm.drop() of ann"));
}

}  // namespace
}  // namespace footplate
