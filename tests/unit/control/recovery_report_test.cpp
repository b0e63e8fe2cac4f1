#include "runtime/control/recovery_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

using ::testing::ElementsAre;
using Clock = std::chrono::steady_clock;

Membership ranks(std::vector<int> origins) {
  Membership members;
  members.origins = std::move(origins);
  return members;
}

const Clock::time_point kStart{std::chrono::seconds(10)};

Json report(const RecoveryStory& story, const Membership& after, const std::vector<int>& behind = {}) {
  message::Rejoin verdict;
  verdict.step = 12;
  verdict.behind = behind;
  return to_json(recovery_report(story, after, verdict, kStart + std::chrono::milliseconds(80)));
}

TEST(RecoveryReportTest, NumbersRanksAsBefore) {
  EXPECT_THAT(numbers_before(ranks({0, 1, 2}), ranks({1, 2, 3})), ElementsAre(1, 2, -1));
  EXPECT_THAT(lost_between(ranks({0, 4, 5}), ranks({4})), ElementsAre(0, 2));
}

TEST(RecoveryReportTest, NamesTheLostByTheirNumbersBefore) {
  const Json told = report({ranks({0, 2, 5}), "", kStart}, ranks({0, 5}), {1});
  EXPECT_EQ(told["state"], "lost");
  EXPECT_EQ(told["ranks"], Json({1}));
  EXPECT_EQ(told["level"], true);
  EXPECT_EQ(told["text"], "rank 1 of 3 lost at step 12; training goes on with 2 ranks (80 ms)");
  EXPECT_EQ(report({ranks({0, 2, 5}), "", kStart}, ranks({5}))["text"],
            "ranks 0, 1 of 3 lost at step 12; training goes on with 1 rank (80 ms)");
}

TEST(RecoveryReportTest, SaysWhatTheLostOnesSaid) {
  RecoveryStory story{ranks({0, 2, 5}), "", kStart};
  story.why_lost = "GPU-1 on n1, cuda:0 (NVIDIA H200), has failed: an illegal memory access";
  EXPECT_EQ(report(story, ranks({0, 5}))["text"],
            "rank 1 of 3 lost at step 12 (GPU-1 on n1, cuda:0 (NVIDIA H200), has failed: an illegal memory "
            "access); training goes on with 2 ranks (80 ms)");
  EXPECT_EQ(origins_lost_between(story.before, ranks({0})), (std::vector<int>{2, 5}));
}

TEST(RecoveryReportTest, SaysWhereTrainingGoesBackTo) {
  message::Rejoin verdict;
  verdict.step = 12;
  verdict.left = 17;
  verdict.checkpoint = "step-12";
  const RankChange told = recovery_report({ranks({0, 2, 5}), "", kStart}, ranks({0, 5}), verdict,
                                          kStart + std::chrono::seconds(2));
  EXPECT_EQ(
      told.text,
      "rank 1 of 3 lost at step 17; training goes back to the checkpoint of step 12, since nobody has all "
      "of its state, with 2 ranks (2000 ms)");
  EXPECT_EQ(told.step, 12);
  EXPECT_EQ(told.left, 17);
}

TEST(RecoveryReportTest, NamesWhoJoined) {
  const Json told = report({ranks({0, 1}), "", kStart}, ranks({0, 1, 2}));
  EXPECT_EQ(told["state"], "joined");
  EXPECT_EQ(told["level"], false);
  EXPECT_EQ(told["text"], "rank 2 joined at step 12; training goes on with 3 ranks (80 ms)");
}

TEST(RecoveryReportTest, SaysWhyAllHaveRebuilt) {
  const Json told = report({ranks({0, 1}), "all_reduce #3 hangs", kStart}, ranks({0, 1}));
  EXPECT_EQ(told["state"], "rebuilt");
  EXPECT_EQ(
      told["text"],
      "communicators were rebuilt at step 12 (all_reduce #3 hangs); training goes on with 2 ranks (80 ms)");
}

}  // namespace
}  // namespace footplate
