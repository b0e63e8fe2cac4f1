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

TEST(Schedule, WarmsUpStaysAndDecays) {
  Schedule wsd = schedule(Schedule::Kind::wsd);
  wsd.decay_steps = 50;
  for (const std::int64_t step : {9, 30, 59}) EXPECT_DOUBLE_EQ(learning_rate(wsd, step), 1.0) << step;
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 84), 0.55);
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 109), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 5000), 0.1);
  wsd.decay_steps = 0;  // a fifth of 100
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 89), 1.0);
  EXPECT_LT(learning_rate(wsd, 90), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 109), 0.1);
}

TEST(Schedule, DropsInSteps) {
  Schedule drops = schedule(Schedule::Kind::step);
  drops.every = 40;
  drops.gamma = 0.5;
  for (const auto& [step, rate] :
       {std::pair(10, 1.0), {49, 1.0}, {50, 0.5}, {89, 0.5}, {90, 0.25}, {130, 0.125}})
    EXPECT_DOUBLE_EQ(learning_rate(drops, step), rate) << step;
  EXPECT_DOUBLE_EQ(learning_rate(drops, 5000), 0.1) << "not below the least";
  drops.every = 0;  // three parts of 100
  for (const auto& [step, rate] : {std::pair(42, 1.0), {44, 0.5}, {80, 0.25}, {109, 0.25}, {5000, 0.25}})
    EXPECT_DOUBLE_EQ(learning_rate(drops, step), rate) << step;
}

TEST(Schedule, Restarts) {
  Schedule cycles = schedule(Schedule::Kind::restarts);
  cycles.every = 50;
  EXPECT_DOUBLE_EQ(learning_rate(cycles, 59), 0.1);
  EXPECT_GT(learning_rate(cycles, 60), 0.99);
  EXPECT_DOUBLE_EQ(learning_rate(cycles, 84), 0.55);
  EXPECT_DOUBLE_EQ(learning_rate(cycles, 20), learning_rate(cycles, 70));
  cycles.every = 0;
  EXPECT_DOUBLE_EQ(learning_rate(cycles, 109), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(cycles, 5000), 0.1);
}

TEST(Schedule, GoesFromPointToPoint) {
  Schedule points = schedule(Schedule::Kind::cosine);
  points.points = {5, 0.5, 15, 1.5, 25, 0};
  points.lr_scale = 2;
  for (const auto& [step, rate] :
       {std::pair(0, 1.0), {4, 1.0}, {9, 2.0}, {14, 3.0}, {19, 1.5}, {24, 0.0}, {5000, 0.0}})
    EXPECT_DOUBLE_EQ(learning_rate(points, step), rate) << step;
}

TEST(Schedule, PointsAreChecked) {
  const Schema schema = runtime_schema();
  const auto error_of = [&](const Json& points) {
    const auto value = schema.check("sched.points", points);
    return value ? "none" : value.error().message;
  };
  EXPECT_EQ(*schema.check("sched.points", Json::parse("[[1, 0.5], [9, 0]]")),
            Value(std::vector<double>{1, 0.5, 9, 0}));
  EXPECT_EQ(*schema.check_text("sched.points", "{ {1, 0.5}, {9, 0} }"),
            Value(std::vector<double>{1, 0.5, 9, 0}));
  EXPECT_EQ(*schema.check("sched.points", Json::array()), Value(std::vector<double>{}));
  EXPECT_NE(error_of(Json::parse("[1, 0.5, 9]")).find("a step without its rate"), std::string::npos);
  EXPECT_NE(error_of(Json::parse("[[1, 0.5], [9]]")).find("a step without its rate"), std::string::npos);
  EXPECT_NE(error_of(Json::parse("[9, 0.5, 1, 1]")).find("step 1 comes after step 9"), std::string::npos);
  EXPECT_NE(error_of(Json::parse("[1.5, 0.5]")).find("1.5 is no step"), std::string::npos);
  EXPECT_NE(error_of(Json::parse("[1, -0.5]")).find("can't be -0.5"), std::string::npos);
}

TEST(Schedule, ThatATaskDoesntFollowIsSaid) {
  Settings settings = Settings::defaults(runtime_schema());
  EXPECT_EQ(unused_schedule_warning(settings, "mine"), "");
  settings.set("sched.base_lr", 0.1, "config");
  EXPECT_EQ(unused_schedule_warning(settings, "mine"),
            "sched.base_lr changes nothing now: run.task = \"mine\" decides its learning rate itself. "
            "optim.lr_scale multiplies it");
  settings.set("sched.warmup_steps", std::int64_t{5}, "config");
  EXPECT_TRUE(
      unused_schedule_warning(settings, "mine").starts_with("sched.base_lr, sched.warmup_steps change "));
}

TEST(Schedule, AWarmUpThatOutlastsTheRunIsSaid) {
  Schedule all = schedule(Schedule::Kind::cosine);
  EXPECT_EQ(warmup_warning(all), "");
  all.steps = 5;
  EXPECT_EQ(warmup_warning(all),
            "sched.warmup_steps (10) is longer than the run (train.steps 5): the learning rate rises to the "
            "end, to "
            "0.5 instead of sched.base_lr (1)");
  EXPECT_DOUBLE_EQ(learning_rate(all, 4), 0.5);
  Settings settings = Settings::defaults(runtime_schema());
  settings.set("train.steps", std::int64_t{50}, "test");
  EXPECT_TRUE(runtime_schema().check_combination(settings));
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
