// Which metrics are logged after which step, and of which steps they are means.
#include "runtime/train/reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using ::testing::ElementsAre;
using testing::metrics_of;
using testing::Rank;

const std::vector<const char*> kDetails{"train/grad_norm",  "perf/data_ms",       "perf/forward_ms",
                                        "perf/backward_ms", "perf/reduce_ms",     "perf/optimizer_ms",
                                        "perf/data_ratio",  "perf/compute_ratio", "mem/resident_mib"};
const std::vector<const char*> kPerformanceNames{"perf/step_ms", "perf/tokens_per_s", "perf/tflops"};
const std::vector<const char*> kLight{"train/loss", "train/lr", "train/epoch"};

/// The steps of the lines that have it.
std::vector<std::int64_t> steps_with(const std::vector<Json>& lines, const char* name) {
  std::vector<std::int64_t> steps;
  for (const Json& line : lines)
    if (line.contains(name)) steps.push_back(line.at("step"));
  return steps;
}

double number(const std::vector<Json>& lines, std::int64_t step, const char* name) {
  for (const Json& line : lines)
    if (line.at("step") == step && line.contains(name)) return line.at(name);
  ADD_FAILURE() << "no " << name << " of step " << step;
  return 0;
}

/// What the phases of a line of details sum up to.
double phases_ms(const std::vector<Json>& lines, std::int64_t step) {
  double sum = 0;
  for (const char* name :
       {"perf/data_ms", "perf/forward_ms", "perf/backward_ms", "perf/reduce_ms", "perf/optimizer_ms"})
    sum += number(lines, step, name);
  return sum;
}

TEST(Reporter, EachKindComesAsOftenAsItsSettingSaysAndSharesTheLineOfItsStep) {
  const auto lines =
      metrics_of(2, {"train.steps=12", "log.every=2", "log.perf_every=3", "log.detail_every=6"});
  for (const char* name : kLight)
    EXPECT_THAT(steps_with(lines, name), ElementsAre(2, 4, 6, 8, 10, 12)) << name;
  for (const char* name : kPerformanceNames)
    EXPECT_THAT(steps_with(lines, name), ElementsAre(3, 6, 9, 12)) << name;
  for (const char* name : kDetails) EXPECT_THAT(steps_with(lines, name), ElementsAre(6, 12)) << name;
  EXPECT_THAT(steps_with(lines, "step"), ElementsAre(2, 3, 4, 6, 8, 9, 10, 12)) << "one line a step";
}

TEST(Reporter, EachKindIsAMeanOverTheStepsSinceItWasLoggedLast) {
  const auto lines =
      metrics_of(1, {"train.steps=12", "log.every=2", "log.perf_every=3", "log.detail_every=6"});
  for (const std::int64_t step : {6, 12}) {
    const double both = number(lines, step - 3, "perf/step_ms") + number(lines, step, "perf/step_ms");
    EXPECT_NEAR(phases_ms(lines, step), both / 2, 1e-9) << "of the same six steps, at step " << step;
  }
  EXPECT_NEAR(number(lines, 9, "perf/tokens_per_s") * number(lines, 9, "perf/step_ms") / 1e3, 7 * 16, 1e-6)
      << "the tokens of a step";
  const double parts = number(lines, 12, "perf/data_ratio") + number(lines, 12, "perf/compute_ratio");
  EXPECT_NEAR(parts, 1 - number(lines, 12, "perf/reduce_ms") / phases_ms(lines, 12), 1e-9);
}

TEST(Reporter, ByTimeAllRanksLogTheSameStep) {
  const auto lines = metrics_of(2, {"log.every=0", "log.perf_every=1h", "log.detail_every=5"});
  EXPECT_THAT(steps_with(lines, "step"), ElementsAre(5, 10));
}

TEST(Reporter, ReducedLeavesTheLightLineAlone) {
  const auto lines = metrics_of(1,
                                {"run.task=synthetic", "train.steps=14", "train.batch_size=13108",
                                 "log.every=2", "log.perf_every=3", "log.detail_every=3", "log.reduced=true"},
                                [](Rank& rank) { rank.gate.change_at(7, "log.reduced", false); });
  EXPECT_THAT(steps_with(lines, "train/loss"), ElementsAre(2, 4, 6, 8, 10, 12, 14));
  EXPECT_THAT(steps_with(lines, "perf/step_ms"), ElementsAre(9, 12));
  EXPECT_THAT(steps_with(lines, "train/grad_norm"), ElementsAre(9, 12));
  EXPECT_THAT(steps_with(lines, "perf/epoch_steps"), ElementsAre(10)) << "an epoch is 5 steps";
  EXPECT_EQ(number(lines, 10, "perf/epoch_steps"), 3) << "what was off isn't in the sums";
  EXPECT_THAT(steps_with(lines, "step"), ElementsAre(2, 4, 6, 8, 9, 10, 12, 14));
}

TEST(Reporter, WhatIsSwitchedOnBeginsWithTheNextStep) {
  const auto lines = metrics_of(1, {"log.every=0", "log.perf_every=1", "log.detail_every=0"}, [](Rank& rank) {
    rank.gate.change_at(6, "log.detail_every", std::int64_t{4});
  });
  ASSERT_THAT(steps_with(lines, "train/grad_norm"), ElementsAre(8));
  EXPECT_NEAR(phases_ms(lines, 8), (number(lines, 7, "perf/step_ms") + number(lines, 8, "perf/step_ms")) / 2,
              1e-9);
}

TEST(Reporter, AnEpochIsSummedUpWhereItEnds) {
  const auto lines = metrics_of(2, {"run.task=synthetic", "train.steps=11", "train.batch_size=13108"});
  ASSERT_THAT(steps_with(lines, "perf/epoch_steps"), ElementsAre(5, 10));
  EXPECT_GE(number(lines, 5, "train/epoch"), 1) << "in the same line";
  double seconds = 0, step_ms = 0;
  for (const char* name : {"perf/epoch_data_loading_time", "perf/epoch_forward_time",
                           "perf/epoch_backward_time", "perf/epoch_reduce_time", "perf/epoch_optimizer_time"})
    seconds += number(lines, 10, name);
  for (const std::int64_t step : {6, 7, 8, 9, 10}) step_ms += number(lines, step, "perf/step_ms");
  EXPECT_NEAR(seconds, step_ms / 1e3, 1e-9);
  EXPECT_EQ(number(lines, 10, "perf/epoch_steps"), 5);
  EXPECT_NEAR(number(lines, 10, "perf/epoch_data_loading_ratio") * seconds,
              number(lines, 10, "perf/epoch_data_loading_time"), 1e-9);
  EXPECT_NEAR(number(lines, 10, "perf/epoch_compute_ratio") * seconds,
              seconds - number(lines, 10, "perf/epoch_data_loading_time") -
                  number(lines, 10, "perf/epoch_reduce_time"),
              1e-9);
  EXPECT_GT(number(lines, 10, "perf/epoch_avg_memory_gb"), 0.005);
}

TEST(Reporter, EpochsThatAreShorterThanTwoStepsAreNotSummedUp) {
  const auto lines = metrics_of(1, {"run.task=synthetic", "train.batch_size=32769"});
  EXPECT_THAT(steps_with(lines, "perf/epoch_steps"), ElementsAre());
}

}  // namespace
}  // namespace footplate
