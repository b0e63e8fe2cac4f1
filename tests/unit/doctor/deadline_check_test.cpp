#include "console/doctor/deadline_check.h"

#include <gmock/gmock.h>

#include "console/doctor/rank_trials.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class DeadlinesTest : public ::testing::Test {
 protected:
  void set(const char* name, Value value) { settings_.set(name, std::move(value), "command line"); }

  const Schema schema_ = runtime_schema();
  Settings settings_ = Settings::defaults(schema_);
};

TEST_F(DeadlinesTest, SettingsInForceNameWhereTheyComeFromWhereSomebodyHasSetThem) {
  set("comm.small_timeout_s", 60.0);
  const Check check = check_settings(schema_, settings_);
  EXPECT_EQ(check.verdict, Verdict::good);
  EXPECT_THAT(check.found,
              AllOf(HasSubstr("comm.small_timeout_s = 60 s (command line)"),
                    HasSubstr("comm.large_timeout_s = 1800 s, "), HasSubstr("nccl.preset = none")));
  EXPECT_EQ(check.values["comm.small_timeout_s"]["source"], "command line");
}

TEST_F(DeadlinesTest, TheModelsGradientsAreCounted) {
  set("run.task", std::string("text"));
  set("model.layers", std::int64_t{12});
  set("model.width", std::int64_t{768});
  set("model.vocabulary", std::int64_t{50257});
  set("model.context", std::int64_t{1024});
  EXPECT_EQ(gradients_of(settings_), 124'439'808) << "GPT-2's";
  set("run.task", std::string("synthetic"));
  EXPECT_FALSE(gradients_of(settings_));
}

TEST_F(DeadlinesTest, FitWhereTheMachineIsFastEnough) {
  set("run.task", std::string("synthetic"));
  const Check check = check_deadlines(settings_, 2, 500'000'000);
  EXPECT_EQ(check.verdict, Verdict::good) << check.found;
  EXPECT_THAT(check.found,
              AllOf(HasSubstr("at 2 GB/s 500 M elements, take 1 s and have 1800 s (comm.large_timeout_s)"),
                    HasSubstr("a bucket of them, 1.049 M elements, take 2.1 ms and have 300 s "
                              "(comm.small_timeout_s)")));
}

TEST_F(DeadlinesTest, ThatAreTooShortAreNamedWithWhatToSet) {
  set("run.task", std::string("synthetic"));
  const Check slow = check_deadlines(settings_, 0.002, 500'000'000);  // 1000 s of 1800
  EXPECT_EQ(slow.verdict, Verdict::to_mend);
  EXPECT_THAT(slow.mend, HasSubstr("comm.large_timeout_s = 4000"));
  set("comm.small_timeout_s", 0.003);
  const Check short_one = check_deadlines(settings_, 2, 500'000'000);
  EXPECT_EQ(short_one.verdict, Verdict::to_mend);
  EXPECT_THAT(short_one.mend, AllOf(HasSubstr("comm.small_timeout_s = 1"), Not(HasSubstr("large"))));
  set("comm.timeout_s", 5000.0);
  EXPECT_THAT(check_deadlines(settings_, 2, 500'000'000).found, HasSubstr("have 5000 s (comm.timeout_s)"));
}

TEST_F(DeadlinesTest, TheLargestReductionIsWhatFitsIntoMemory) {
  for (const std::int64_t elements : {1'000'000, 500'000'000})
    EXPECT_EQ(largest_reduction(memory_of_reduction(elements)), elements);
  EXPECT_EQ(largest_reduction(memory_of_reduction(500'000'000) - 1), 499'000'000);
  EXPECT_EQ(largest_reduction(0), 0);
}

}  // namespace
}  // namespace footplate
