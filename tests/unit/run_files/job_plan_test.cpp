#include "run_files/job_plan.h"

#include "tests/unit/run_files/folder_fixture.h"

namespace footplate {
namespace {

class JobPlanTest : public test::FolderTest {};

TEST_F(JobPlanTest, IsReadAsItWasWritten) {
  write("jobs/1-watch.lua", "");
  ASSERT_TRUE(write_job_plan(folder_, {true, 2, {{"watch", "1-watch.lua", "jobs/watch.lua", {"a", "b"}}}}));
  const JobPlan plan = read_job_plan(folder_);
  EXPECT_TRUE(plan.unattended);
  EXPECT_EQ(plan.given, 2);
  ASSERT_EQ(plan.jobs.size(), 1U);
  EXPECT_EQ(plan.jobs[0].path, "jobs/watch.lua");
  EXPECT_EQ(plan.jobs[0].arguments.size(), 2U);
}

TEST_F(JobPlanTest, WhatCannotBeReadHidesNothingElse) {
  EXPECT_TRUE(read_job_plan(folder_).jobs.empty());
  write("jobs/jobs.json", R"({"unattended": 5, "given": 3, "jobs": [1, {"name": 5}, {"name": "b"}]})");
  const JobPlan plan = read_job_plan(folder_);
  EXPECT_FALSE(plan.unattended);
  EXPECT_EQ(plan.given, 3);
  ASSERT_EQ(plan.jobs.size(), 1U);
  EXPECT_EQ(plan.jobs[0].name, "b");
}

}  // namespace
}  // namespace footplate
