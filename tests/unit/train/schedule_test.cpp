#include "runtime/train/schedule.h"

#include <gtest/gtest.h>

#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

Schedule schedule(Schedule::Kind kind) {
  return {kind, 1.0, 0.1, 10, 110, 1.0};
}

TEST(Schedule, WarmsUpToTheBaseRate) {
  for (const auto kind : {Schedule::Kind::cosine, Schedule::Kind::linear, Schedule::Kind::constant}) {
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), 0), 0.1);
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), 9), 1.0);
  }
}

TEST(Schedule, EndsAtTheLowestRateAndStaysThere) {
  for (const auto kind : {Schedule::Kind::cosine, Schedule::Kind::linear}) {
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), 59), 0.55);  // half way
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), 109), 0.1);
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), 5000), 0.1);
  }
  EXPECT_GT(learning_rate(schedule(Schedule::Kind::cosine), 20),
            learning_rate(schedule(Schedule::Kind::linear), 20));
  EXPECT_DOUBLE_EQ(learning_rate(schedule(Schedule::Kind::constant), 5000), 1.0);
}

TEST(Schedule, ScaleActsOnAllOfIt) {
  Schedule half = schedule(Schedule::Kind::cosine);
  half.lr_scale = 0.5;
  for (const std::int64_t step : {0, 9, 50, 109})
    EXPECT_DOUBLE_EQ(learning_rate(half, step), 0.5 * learning_rate(schedule(Schedule::Kind::cosine), step));
}

TEST(Schedule, NoWarmUpAndNothingButWarmUp) {
  Schedule none = schedule(Schedule::Kind::linear);
  none.warmup_steps = 0;
  EXPECT_NEAR(learning_rate(none, 0), 1.0, 0.01);
  Schedule only = schedule(Schedule::Kind::linear);
  only.steps = 10;
  EXPECT_DOUBLE_EQ(learning_rate(only, 9), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(only, 10), 0.1);
}

TEST(Schedule, ReadsTheSettings) {
  Settings settings = Settings::defaults(runtime_schema());
  settings.set("sched.kind", std::string("linear"), "test");
  settings.set("train.steps", std::int64_t{400}, "test");
  settings.set("optim.lr_scale", 0.25, "test");
  const Schedule read = Schedule::from(settings);
  EXPECT_EQ(read.kind, Schedule::Kind::linear);
  EXPECT_EQ(read.steps, 400);
  EXPECT_EQ(read.lr_scale, 0.25);
  EXPECT_EQ(read.base_lr, settings.number("sched.base_lr"));
  EXPECT_EQ(read.warmup_steps, settings.integer("sched.warmup_steps"));
}

}  // namespace
}  // namespace footplate
