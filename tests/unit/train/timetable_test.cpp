#include "runtime/train/timetable.h"

#include <gtest/gtest.h>

#include <vector>

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr Timetable::Clock::time_point kStart{};

StepSettings every(Interval log, Interval evaluation, Interval checkpoint) {
  StepSettings settings;
  settings.log_every = log;
  settings.eval_every = evaluation;
  settings.ckpt_every = checkpoint;
  return settings;
}

TEST(Timetable, StepsAreCountedAndTimeIsRank0s) {
  Timetable rank0;
  Timetable other;
  for (Timetable* one : {&rank0, &other}) one->configure(every({10, 0}, {0, 60}, {0, 1800}), kStart);
  EXPECT_EQ(rank0.by_time(kStart + 59s), 0);
  EXPECT_TRUE(rank0.is_due(Recurring::log, 20, 0));
  EXPECT_FALSE(rank0.is_due(Recurring::log, 21, 0));
  EXPECT_FALSE(rank0.is_due(Recurring::evaluation, 60, 0)) << "steps don't count there";

  const float due = rank0.by_time(kStart + 60s);
  for (const Timetable* one : {&rank0, &other}) {
    EXPECT_TRUE(one->is_due(Recurring::evaluation, 7, due));
    EXPECT_FALSE(one->is_due(Recurring::checkpoint, 7, due));
    EXPECT_FALSE(one->is_due(Recurring::log, 7, due));
  }
  EXPECT_EQ(rank0.by_time(kStart + 61s), due) << "until it has passed: the step may be tried again";
  for (Timetable* one : {&rank0, &other}) one->passed(7, due, kStart + 62s);
  EXPECT_EQ(rank0.by_time(kStart + 121s), 0);
  EXPECT_EQ(rank0.by_time(kStart + 122s), due);
  EXPECT_EQ(other.by_time(kStart + 122s), due) << "which may be rank 0 by now";
  const float both = rank0.by_time(kStart + 1800s);
  EXPECT_TRUE(other.is_due(Recurring::evaluation, 8, both) && other.is_due(Recurring::checkpoint, 8, both));
}

TEST(Timetable, WhatFailedIsDueOnceMoreByRank0sClock) {
  Timetable table;
  table.configure(every({10, 0}, {0, 60}, {100, 0}), kStart);
  table.again_in(Recurring::checkpoint, 5, kStart);
  EXPECT_EQ(table.by_time(kStart + 4s), 0);
  const float due = table.by_time(kStart + 5s);
  EXPECT_TRUE(table.is_due(Recurring::checkpoint, 7, due));
  EXPECT_TRUE(table.is_due(Recurring::checkpoint, 100, 0));
  EXPECT_FALSE(table.is_due(Recurring::log, 7, due) || table.is_due(Recurring::evaluation, 7, due));
  table.passed(7, due, kStart + 5s);
  EXPECT_EQ(table.by_time(kStart + 59s), 0);
  table.again_in(Recurring::checkpoint, 5, kStart);
  table.passed(100, 0, kStart + 1s);
  EXPECT_EQ(table.by_time(kStart + 59s), 0) << "ckpt.every was due before";
  table.again_in(Recurring::checkpoint, 5, kStart);
  table.configure(every({10, 0}, {0, 60}, {0, 0}), kStart);
  EXPECT_EQ(table.by_time(kStart + 59s), 0) << "ckpt.every = 0 in between";
}

TEST(Timetable, PartsOfALineWaitForTheNextOne) {
  Timetable table;
  StepSettings settings = every({10, 0}, {0, 0}, {0, 0});
  settings.perf_every = {4, 0};
  settings.detail_every = {25, 0};
  table.configure(settings, kStart);
  std::vector<std::int64_t> performance, details;
  for (std::int64_t step = 1; step <= 60; ++step) {
    if (table.is_due(Recurring::performance, step, 0)) performance.push_back(step);
    if (table.is_due(Recurring::details, step, 0)) details.push_back(step);
    table.passed(step, 0, kStart);
  }
  EXPECT_EQ(performance, (std::vector<std::int64_t>{10, 20, 30, 40, 50, 60}));
  EXPECT_EQ(details, (std::vector<std::int64_t>{30, 50}));

  settings.log_every = {0, 0};
  table.configure(settings, kStart);
  EXPECT_TRUE(table.is_due(Recurring::performance, 64, 0)) << "by itself, where there is no line";
  EXPECT_FALSE(table.is_due(Recurring::details, 64, 0));
}

TEST(Timetable, AnotherIntervalBeginsAnew) {
  Timetable table;
  table.configure(every({10, 0}, {0, 0}, {0, 60}), kStart);
  table.configure(every({20, 0}, {0, 0}, {0, 60}), kStart + 30s);
  EXPECT_NE(table.by_time(kStart + 60s), 0) << "that of checkpoints is as it was";
  table.configure(every({20, 0}, {0, 0}, {0, 90}), kStart + 60s);
  EXPECT_EQ(table.by_time(kStart + 149s), 0);
  EXPECT_NE(table.by_time(kStart + 150s), 0);
  table.configure(every({20, 0}, {0, 0}, {500, 0}), kStart + 150s);
  EXPECT_EQ(table.by_time(kStart + 1000s), 0);
  EXPECT_TRUE(table.is_due(Recurring::checkpoint, 1000, 0));
}

}  // namespace
}  // namespace footplate
