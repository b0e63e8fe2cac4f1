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

SlurmJob job_of(const std::string& id, std::optional<std::int64_t> end_s) {
  SlurmJob job;
  job.id = id;
  job.end_s = end_s;
  return job;
}

TEST(Slurm, AJobIsToldByItsVariables) {
  EXPECT_FALSE(slurm_job({{"SLURM_NTASKS", "4"}}));
  EXPECT_FALSE(slurm_job({{"SLURM_JOB_ID", ""}}));
  EXPECT_EQ(slurm_job({{"SLURM_JOB_ID", "4711"}})->id, "4711");
  EXPECT_EQ(slurm_job({{"SLURM_JOB_ID", "4711"}, {"SLURM_JOB_END_TIME", "1800000000"}})->end_s,
            1'800'000'000);
  for (const char* odd : {"", "UNLIMITED", "18x", "-5", "99999999999999999999"})
    EXPECT_FALSE(slurm_job({{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_END_TIME", odd}})->end_s) << odd;
}

TEST(Slurm, SqueueTellsWhatIsLeft) {
  EXPECT_EQ(seconds_left("0:09"), 9);
  EXPECT_EQ(seconds_left("59:58"), 59 * 60 + 58);
  EXPECT_EQ(seconds_left("23:59:58"), 86398);
  EXPECT_EQ(seconds_left("2-00:00:01"), 2 * 86400 + 1);
  for (const char* odd : {"", "UNLIMITED", "INVALID", "NOT_SET", "7", "1-", "x:10", "1:-5", "1:2:3:4"})
    EXPECT_FALSE(seconds_left(odd)) << odd;
}

TEST(Slurm, ARestartIsCounted) {
  EXPECT_EQ(slurm_job({{"SLURM_JOB_ID", "1"}})->restarts, 0);
  EXPECT_EQ(slurm_job({{"SLURM_JOB_ID", "1"}, {"SLURM_RESTART_COUNT", "2"}})->restarts, 2);
}

TEST(Slurm, TheLimitLeavesTimeToSaveAndGivesWayToTheUsers) {
  const Schema schema = runtime_schema();
  Settings settings = Settings::defaults(schema);
  EXPECT_FALSE(limit_to_job(settings, job_of("7", std::nullopt), 1000));
  EXPECT_EQ(settings.number(kLimit), 0);
  EXPECT_TRUE(limit_to_job(settings, job_of("7", 4600), 1000));
  EXPECT_EQ(settings.number(kLimit), 3600 - 120);
  EXPECT_THAT(settings.source(kLimit), HasSubstr("job 7"));
  // The next job of the same run, and ones that are short, or over.
  EXPECT_FALSE(limit_to_job(settings, job_of("8", 1100), 1000)) << "it is that of another job";
  forget_earlier_job(settings);
  EXPECT_EQ(settings.number(kLimit), 0);
  EXPECT_TRUE(limit_to_job(settings, job_of("8", 1100), 1000));
  EXPECT_EQ(settings.number(kLimit), 75);
  forget_earlier_job(settings);
  EXPECT_TRUE(limit_to_job(settings, job_of("9", 900), 1000));
  EXPECT_EQ(settings.number(kLimit), 1) << "0 would be none";
  settings.set(kLimit, 60.0, "mine.lua");
  forget_earlier_job(settings);
  EXPECT_FALSE(limit_to_job(settings, job_of("9", 4600), 1000));
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
  EXPECT_EQ(why_not_requeued(limit, {.saved = true}), "");
  EXPECT_THAT(why_not_requeued(limit, {}), HasSubstr("nothing was saved since it began (time limit)"));
  EXPECT_EQ(why_not_requeued(result(75, "signal"), {.signal = SIGUSR1}), "");
  EXPECT_THAT(why_not_requeued(result(75, "signal"), {.signal = SIGTERM, .saved = true}),
              HasSubstr("scancel"));
  // Slurm sends it itself once the time is over.
  EXPECT_EQ(why_not_requeued(result(75, "signal"), {.signal = SIGTERM, .near_end = true, .saved = true}), "");
  EXPECT_THAT(why_not_requeued(result(75, "signal"), {.signal = SIGTERM, .near_end = true}),
              HasSubstr("nothing was saved"));
  EXPECT_THAT(why_not_requeued(result(75, "signal"), {.signal = SIGUSR1, .in_vain = true}),
              HasSubstr("put back before"));
  EXPECT_EQ(why_not_requeued(result(75, "signal"), {.signal = SIGUSR1, .saved = true, .in_vain = true}), "");
  EXPECT_THAT(why_not_requeued(result(1, "lost"), {.saved = true}), HasSubstr("code 1, not 75"));
}

}  // namespace
}  // namespace footplate
