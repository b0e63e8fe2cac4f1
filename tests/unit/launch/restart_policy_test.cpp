#include "console/launch/supervise/restart_policy.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "protocol/exit_codes.h"

namespace footplate {
namespace {

using std::chrono::seconds;

RunResult failed_at(std::int64_t step) {
  RunResult result;
  result.code = static_cast<int>(ExitCode::failed);
  result.reason = "it broke";
  result.step = step;
  return result;
}

RestartPolicy policy_of(int most, bool asked) {
  return {"r", std::filesystem::temp_directory_path() / "no-such-run", most, asked};
}

TEST(RestartPolicyTest, PausesGrowWhileThereIsNoProgress) {
  RestartPolicy policy = policy_of(100, true);
  std::vector<std::int64_t> pauses;
  for (int start = 1; start <= 8; ++start) {
    policy.ended(start, failed_at(5), true);
    ASSERT_TRUE(policy.decide(false).again);
    pauses.push_back(policy.pause().count());
  }
  EXPECT_THAT(pauses, ::testing::ElementsAre(1, 2, 4, 8, 16, 32, 60, 60));
  policy.ended(9, failed_at(6), true);
  EXPECT_EQ(policy.pause(), seconds(1));
}

TEST(RestartPolicyTest, AStartThatAHostKeptFromItsFirstStepDoesNotCount) {
  RestartPolicy policy = policy_of(1, false);
  policy.ended(1, failed_at(5), true);
  ASSERT_TRUE(policy.decide(false).again);
  for (int start = 2; start < 12; ++start) {
    policy.ended(start, failed_at(5), false);
    ASSERT_TRUE(policy.decide(true).again) << start;
  }
  EXPECT_EQ(policy.restarts(), 1);
  policy.ended(12, failed_at(5), false);
  EXPECT_FALSE(policy.decide(true).again) << "so many times in a row it isn't the hosts";
}

TEST(RestartPolicyTest, WithoutRestartsAHostIsNoReasonEither) {
  RestartPolicy policy = policy_of(0, true);
  policy.ended(1, failed_at(5), false);
  EXPECT_FALSE(policy.decide(true).again);
}

TEST(RestartPolicyTest, NeverAfterTheSameStepTwiceUnlessAsked) {
  for (const bool asked : {false, true}) {
    RestartPolicy policy = policy_of(3, asked);
    policy.ended(1, failed_at(5), true);
    ASSERT_TRUE(policy.decide(false).again);
    policy.ended(2, failed_at(5), true);
    EXPECT_EQ(policy.decide(false).again, asked);
  }
}

}  // namespace
}  // namespace footplate
