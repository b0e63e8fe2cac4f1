// Through the trainer's door, on simulated ranks.
#include "runtime/train/evaluation_driver.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

TEST(EvaluationDriver, OneThatIsSkippedIsRecordedAndTrainingGoesOnUnchanged) {
  const auto undisturbed = testing::train(2, testing::small_settings());
  const auto hashes = testing::train(
      2, testing::small_settings({"eval.every=3"}),
      [](testing::Rank& rank) {
        rank.gate.meeting_outcome = fail(ErrorKind::timed_out, "rank 1 didn't come");
      },
      [](testing::Rank& rank) {
        EXPECT_EQ(rank.gate.meetings, 3);
        if (rank.communicator.rank() != 0) return;
        std::vector<double> local;
        for (const Json& line : rank.sink.lines)
          if (line.value("eval/evaluation_failed", 0) == 1) {
            local.push_back(line.at("eval/local_loss").get<double>());
            EXPECT_EQ(line.at("eval/reason"),
                      fmt::format("evaluation skipped: rank 1 didn't come. Local loss of rank 0: {:.4f}",
                                  local.back()));
            EXPECT_GT(line.at("eval/local_accuracy"), 0);
          }
        ASSERT_EQ(local.size(), 3U);
        EXPECT_LT(local[2], local[0]) << "it trains on";
        EXPECT_LT(local[0], 5.5);
        ASSERT_EQ(rank.gate.events["eval"].size(), 3U);
        for (std::size_t i = 0; i < local.size(); ++i)
          EXPECT_EQ(rank.gate.events["eval"][i].at("local_loss"), local[i]);
      });
  EXPECT_EQ(hashes, undisturbed);
}

TEST(EvaluationDriver, OfAModelIsTheSameOnAnyNumberOfRanks) {
  std::map<int, double> losses;
  std::map<int, double> accuracies;
  for (const int world_size : {1, 3}) {
    testing::train(world_size, testing::small_settings(), [&](testing::Rank& rank) {
      const auto result = rank.trainer.call({"eval.now", Json::object()}, 0);
      ASSERT_TRUE(result) << result.error().message;
      if (rank.communicator.rank() != 0) return;
      losses[world_size] = std::get<EvaluationResult>(*result).loss.value();
      accuracies[world_size] = std::get<EvaluationResult>(*result).metrics.at("accuracy");
    });
  }
  EXPECT_EQ(accuracies[1], accuracies[3]) << "counts are exact";
  EXPECT_GT(accuracies[1], 0);
  EXPECT_LT(accuracies[1], 0.5);
  EXPECT_NEAR(losses[1], losses[3], 1e-6);
  EXPECT_NEAR(losses[1], 5.545, 0.1);  // ln 256: nothing learned yet
}

TEST(EvaluationDriver, WhatIsCountedInEvaluationsAloneIsNoMetricOfTraining) {
  testing::train(2, testing::small_settings({"eval.every=4", "log.every=1"}), {}, [](testing::Rank& rank) {
    if (rank.communicator.rank() != 0) return;
    int evaluated = 0;
    for (const Json& line : rank.sink.lines) {
      EXPECT_FALSE(line.contains("train/accuracy")) << line;
      evaluated += line.contains("eval/accuracy") ? 1 : 0;
    }
    EXPECT_EQ(evaluated, 2);
  });
}

TEST(EvaluationDriver, TheLastOneOfAFinishedRunIsOfEverything) {
  testing::train(
      2, testing::small_settings({"eval.every=4", "eval.at_end=true", "eval.batches=1", "eval.batch_size=8"}),
      {}, [](testing::Rank& rank) {
        if (rank.communicator.rank() != 0) return;
        const auto& events = rank.gate.events["eval"];
        ASSERT_EQ(events.size(), 3u);  // steps 4 and 8, and the end
        EXPECT_EQ(events[1].at("tokens"), 8 * 16);
        EXPECT_GT(events[2].at("tokens").get<int>(), 8 * 16);
      });
}

TEST(EvaluationDriver, OnlyThoseOnEvalBatchesAreTheRunsLossAndItsBest) {
  testing::train(
      2, testing::small_settings({"eval.every=4", "eval.at_end=true", "eval.batches=1", "eval.batch_size=8"}),
      [](testing::Rank& rank) {
        rank.gate.call_at(9, {"eval.now", {{"batches", 2}}});
      },
      [](testing::Rank& rank) {
        if (rank.communicator.rank() != 0) return;
        std::vector<std::string> names;
        double best = 0;
        for (const Json& line : rank.sink.lines)
          for (const char* name : {"eval/loss", "eval/other_loss", "eval/full_loss"})
            if (line.contains(name)) {
              names.emplace_back(name);
              if (names.size() == 2) best = line.at(name).get<double>();
              EXPECT_TRUE(names.size() < 3 || line.at("eval/best") == best) << line;
            }
        EXPECT_EQ(names,
                  (std::vector<std::string>{"eval/loss", "eval/loss", "eval/other_loss", "eval/full_loss"}));
        const auto& events = rank.gate.events["eval"];
        ASSERT_EQ(events.size(), 4U);
        EXPECT_FALSE(events[1].contains("on"));
        EXPECT_EQ(events[1].at("best_step"), 8);
        EXPECT_EQ(events[2].at("on"), "other");
        EXPECT_EQ(events[3].at("on"), "everything");
        EXPECT_EQ(events[3].at("best"), best);
        EXPECT_EQ(events[3].at("best_step"), 8);
        EXPECT_EQ(rank.progress.best_evaluation(), (BestEvaluation{best, 8, "main"}));
      });
}

/// Rank 0's lines of evaluations at steps 3, 6 and 9 with a fault; training has to end as without any.
std::vector<Json> lines_with(const char* faults, std::vector<Json>* events = nullptr) {
  const auto undisturbed = testing::train(2, testing::small_settings());
  std::vector<Json> lines;
  setenv("FOOTPLATE_FAULT", faults, 1);
  const auto hashes =
      testing::train(2, testing::small_settings({"eval.every=3", "eval.batches=2", "eval.batch_size=32"}), {},
                     [&](testing::Rank& rank) {
                       if (rank.communicator.rank() != 0) return;
                       if (events != nullptr) *events = rank.gate.events["eval"];
                       for (const Json& line : rank.sink.lines)
                         if (line.contains("eval/loss") || line.contains("eval/evaluation_failed"))
                           lines.push_back(line);
                     });
  unsetenv("FOOTPLATE_FAULT");
  EXPECT_EQ(hashes, undisturbed) << faults;
  EXPECT_EQ(lines.size(), 3U) << faults;
  return lines;
}

TEST(EvaluationDriver, AFailedOneIsRecordedAndTrainingGoesOnUnchanged) {
  for (const auto& [fault, reason] :
       {std::pair{"eval_throw", "ranks 0, 1: injected"}, {"eval_nan", "isn't finite"}}) {
    std::vector<Json> events;
    for (const Json& line : lines_with(fault, &events)) {
      EXPECT_EQ(line.at("eval/evaluation_failed"), 1);
      EXPECT_THAT(line.at("eval/reason").get<std::string>(), HasSubstr(reason));
      EXPECT_FALSE(line.contains("eval/loss"));
      EXPECT_FALSE(line.contains("eval/local_loss")) << "the ranks did reduce";
    }
    for (const Json& event : events) EXPECT_TRUE(event.at("failed").get<bool>());
  }
}

TEST(EvaluationDriver, WhatHelpedIsRecordedAndTrainingGoesOnUnchanged) {
  for (const auto& [fault, retries] :
       {std::pair{"eval_throw:rank=1:tries=1", 1}, {"eval_throw:rank=1:above=8", 2}}) {
    for (const Json& line : lines_with(fault)) {
      EXPECT_EQ(line.at("eval/retries"), retries) << fault;
      EXPECT_FALSE(line.contains("eval/partial"));
    }
  }
  std::vector<Json> events;
  for (const Json& line : lines_with("eval_throw:rank=1", &events)) {
    EXPECT_EQ(line.at("eval/partial"), 1);
    EXPECT_EQ(line.at("eval/batches"), 1);  // 32 of 64 samples
    EXPECT_EQ(line.at("eval/batches_wanted"), 2);
    EXPECT_FALSE(line.contains("eval/evaluation_failed"));
  }
  for (const Json& event : events) {
    EXPECT_EQ(event.at("partial"), true);
    EXPECT_EQ(event.at("best"), "@inf") << "a partial one is no best";
  }
}

TEST(EvaluationDriver, OneThatWasAskedForIsRecordedWhereItFails) {
  setenv("FOOTPLATE_FAULT", "eval_throw", 1);
  testing::train(
      2, testing::small_settings(),
      [](testing::Rank& rank) {
        rank.gate.call_at(4, {"eval.now", Json::object()});
      },
      [](testing::Rank& rank) {
        EXPECT_FALSE(rank.gate.results.at(4));
        if (rank.communicator.rank() != 0) return;
        ASSERT_EQ(rank.gate.events["eval"].size(), 1U);
        EXPECT_TRUE(rank.gate.events["eval"][0].value("failed", false));
      });
  unsetenv("FOOTPLATE_FAULT");
}

}  // namespace
}  // namespace footplate
