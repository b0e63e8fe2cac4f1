#include "console/launch/start/slurm_job.h"
#include "console/launch/supervise/requeue.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "protocol/json.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using testing::HasSubstr;

constexpr const char* kLimit = "run.time_limit";

TEST(Slurm, AJobIsToldByItsVariables) {
  EXPECT_FALSE(slurm_job({{"SLURM_NTASKS", "4"}}));
  EXPECT_FALSE(slurm_job({{"SLURM_JOB_ID", ""}}));
  EXPECT_EQ(slurm_job({{"SLURM_JOB_ID", "4711"}})->id, "4711");
  EXPECT_EQ(slurm_job({{"SLURM_JOB_ID", "4711"}, {"SLURM_JOB_END_TIME", "1800000000"}})->end_s,
            1'800'000'000);
  for (const char* odd : {"", "UNLIMITED", "18x", "-5", "99999999999999999999"})
    EXPECT_FALSE(slurm_job({{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_END_TIME", odd}})->end_s) << odd;
}

TEST(Slurm, TheLimitLeavesTimeToSaveAndGivesWayToTheUsers) {
  const Schema schema = runtime_schema();
  Settings settings = Settings::defaults(schema);
  EXPECT_FALSE(limit_to_job(settings, {"7", std::nullopt}, 1000));
  EXPECT_EQ(settings.number(kLimit), 0);
  EXPECT_TRUE(limit_to_job(settings, {"7", 4600}, 1000));
  EXPECT_EQ(settings.number(kLimit), 3600 - 120);
  EXPECT_THAT(settings.source(kLimit), HasSubstr("job 7"));
  // The next job of the same run, and ones that are short, or over.
  EXPECT_TRUE(limit_to_job(settings, {"8", 1100}, 1000));
  EXPECT_EQ(settings.number(kLimit), 75);
  EXPECT_TRUE(limit_to_job(settings, {"9", 900}, 1000));
  EXPECT_EQ(settings.number(kLimit), 1) << "0 would be none";
  settings.set(kLimit, 60.0, "mine.lua");
  EXPECT_FALSE(limit_to_job(settings, {"9", 4600}, 1000));
  EXPECT_EQ(settings.number(kLimit), 60);
}

TEST(Slurm, OnlyWhatCanGoOnIsPutBack) {
  const auto result = [](int code, const std::string& reason) {
    RunResult made;
    made.code = code;
    made.reason = reason;
    return made;
  };
  const RunResult limit = result(75, "time limit");
  EXPECT_EQ(why_not_requeued(limit, 0, true), "");
  EXPECT_THAT(why_not_requeued(limit, 0, false), HasSubstr("nothing was saved since it began (time limit)"));
  EXPECT_EQ(why_not_requeued(result(75, "signal"), SIGUSR1, false), "");
  EXPECT_THAT(why_not_requeued(result(75, "signal"), SIGTERM, true), HasSubstr("scancel"));
  EXPECT_THAT(why_not_requeued(result(1, "lost"), 0, true), HasSubstr("code 1, not 75"));
}

}  // namespace
}  // namespace footplate
