// Evaluation beside training: what it finds, and that training is as it would be without.
#include "runtime/train/async_evaluation.h"

#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/comm/sim/sim_world.h"
#include "runtime/device/faulty_device.h"
#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;
using testing::Rank;
using testing::small_settings;

/// What a run of two ranks left behind.
struct Left {
  std::set<std::uint64_t> hashes;
  std::map<std::int64_t, Json> evaluations;  ///< lines of metrics, by step
  std::vector<Json> warnings;
};

Left train_with(std::vector<std::string> assignments, const char* faults = nullptr) {
  Left left;
  if (faults != nullptr) setenv("FOOTPLATE_FAULT", faults, 1);
  const auto hashes = testing::train(2, small_settings(assignments), {}, [&](Rank& rank) {
    if (rank.communicator.rank() != 0) return;
    left.warnings = rank.gate.events["warn"];
    for (const Json& line : rank.sink.lines)
      if (line.contains("eval/loss") || line.contains("eval/evaluation_failed"))
        left.evaluations[line.at("step").get<std::int64_t>()] = line;
  });
  unsetenv("FOOTPLATE_FAULT");
  left.hashes.insert(hashes.begin(), hashes.end());
  return left;
}

TEST(AsyncEvaluation, ChangesNothingInTraining) {
  const auto never = train_with({});
  ASSERT_EQ(never.hashes.size(), 1U);
  for (const char* every : {"eval.every=1", "eval.every=2", "eval.every=7"}) {
    const auto left = train_with({"eval.async=true", every});
    EXPECT_EQ(left.hashes, never.hashes) << every;
    EXPECT_FALSE(left.evaluations.empty()) << every;
  }
}

TEST(AsyncEvaluation, FindsWhatAnEvaluationInBetweenWouldFind) {
  const auto between = train_with({"eval.every=1"});
  const auto beside = train_with({"eval.every=1", "eval.async=true"});
  for (const auto& [step, line] : beside.evaluations) {
    EXPECT_EQ(line.at("eval/loss"), between.evaluations.at(step).at("eval/loss")) << step;
    EXPECT_GT(line.at("eval/waited_s"), 0) << step;
    EXPECT_FALSE(between.evaluations.at(step).contains("eval/waited_s")) << step;
  }
}

/// As where somebody has added a text to a folder since the run began.
TEST(AsyncEvaluation, DataThatHaveChangedOnTheDiskAreNotEvaluated) {
  const std::filesystem::path corpus =
      std::filesystem::temp_directory_path() / ("footplate-changing-" + std::to_string(::getpid()));
  const auto write = [&](const char* line) {
    const std::filesystem::path fresh = corpus.string() + ".new";  // training has the old one mapped
    std::ofstream file(fresh);
    for (int i = 0; i < 2000; ++i) file << line << i << "\n";
    file.close();
    std::filesystem::rename(fresh, corpus);
  };
  write("the first of the texts ");
  const auto reason = [&](const char* later) {
    std::string told = "no evaluation";
    testing::train(
        1, small_settings({"eval.async=true", "eval.every=10", "data.corpus=" + corpus.string()}),
        [&](Rank&) { write(later); },
        [&](Rank& rank) {
          for (const Json& line : rank.sink.lines)
            if (line.contains("eval/loss") || line.contains("eval/evaluation_failed"))
              told = line.value("eval/reason", "");
        });
    return told;
  };
  EXPECT_EQ(reason("the first of the texts "), "");
  EXPECT_THAT(reason("another text "), HasSubstr("the data have changed on the disk"));
  std::filesystem::remove(corpus);
}

TEST(AsyncEvaluation, OneThatFailsIsRecordedAndTrainingGoesOn) {
  const auto never = train_with({});
  for (const char* faults : {"eval_throw", "eval_nan", "eval_throw:rank=1", "eval_throw:rank=1:tries=1"}) {
    const auto left = train_with({"eval.async=true", "eval.every=10"}, faults);
    EXPECT_EQ(left.hashes, never.hashes) << faults;
    ASSERT_EQ(left.evaluations.size(), 1U) << faults;
  }
  const auto all = train_with({"eval.async=true", "eval.every=10"}, "eval_throw").evaluations.at(10);
  EXPECT_THAT(all.at("eval/reason").get<std::string>(), HasSubstr("ranks 0, 1: injected"));
  const auto one = train_with({"eval.async=true", "eval.every=10"}, "eval_throw:rank=1").evaluations.at(10);
  EXPECT_EQ(one.at("eval/partial"), 1);
  const auto again =
      train_with({"eval.async=true", "eval.every=10"}, "eval_throw:rank=1:tries=1").evaluations.at(10);
  EXPECT_EQ(again.at("eval/retries"), 1);
  EXPECT_FALSE(again.contains("eval/partial"));
}

/// How often all that is held out was evaluated after the last step, with or without success.
std::size_t final_evaluations(std::vector<std::string> assignments, const char* faults = nullptr) {
  if (faults != nullptr) setenv("FOOTPLATE_FAULT", faults, 1);
  assignments.insert(assignments.end(), {"eval.every=10", "eval.batches=0", "eval.at_end=true"});
  std::size_t found = 0;
  testing::train(2, small_settings(assignments), {}, [&](Rank& rank) {
    if (rank.communicator.rank() != 0) return;
    for (const Json& line : rank.sink.lines)
      found += line.contains("eval/loss") || line.contains("eval/evaluation_failed") ? 1 : 0;
  });
  unsetenv("FOOTPLATE_FAULT");
  return found;
}

TEST(AsyncEvaluation, TheEndEvaluatesOnceAndAgainWhatFailed) {
  for (const char* async : {"eval.async=true", "eval.async=false"}) {
    EXPECT_EQ(final_evaluations({async}), 1U) << async;
    EXPECT_EQ(final_evaluations({async}, "eval_throw"), 2U) << async;
    EXPECT_EQ(final_evaluations({async}, "eval_throw:rank=1"), 2U) << async << ", partial";
  }
}

/// A step of 5 ms, an evaluation of 180 ms: most that are due fall into one that is under way.
TEST(AsyncEvaluation, WhatIsDueDuringOneIsLeftOutAndSaidSo) {
  const auto left = train_with({"run.task=synthetic", "model.step_ms=5", "eval.async=true", "eval.every=1"});
  ASSERT_FALSE(left.warnings.empty());
  EXPECT_THAT(left.warnings[0].at("text").get<std::string>(), HasSubstr("is still under way"));
  EXPECT_FALSE(left.evaluations.empty());
}

/// Another choice of samples from then on; this one was made on what eval.batches was.
TEST(AsyncEvaluation, CountsAsTheBestThoughEvalBatchesChangesMeanwhile) {
  testing::train(
      2, small_settings({"eval.async=true", "eval.every=5"}),
      [](Rank& rank) { rank.gate.change_at(5, "eval.batches", std::int64_t{3}); },
      [](Rank& rank) {
        if (rank.communicator.rank() != 0) return;
        ASSERT_FALSE(rank.gate.events["eval"].empty());
        const Json& event = rank.gate.events["eval"].front();
        EXPECT_EQ(event.at("step"), 5);
        EXPECT_EQ(event.at("best"), event.at("loss"));
      });
}

/// Its parameter is the loss of its one sample.
class OneSample final : public v1::Task {
 public:
  explicit OneSample(std::function<void()> on_load) : on_load_(std::move(on_load)) {}
  std::vector<v1::Parameter> parameters() override { return {{"loss", value_}}; }
  std::vector<v1::DataSet> data() override { return {{.name = "one", .training = 1, .held_out = 2}}; }
  v1::Batch load(const v1::Samples& /*samples*/) override {
    if (on_load_) on_load_();
    return {.tensors = {value_}, .weight = 1};
  }
  at::Tensor loss(const v1::Batch& batch, v1::Sums& /*sums*/) override { return batch.tensors[0].sum(); }

 private:
  const std::function<void()> on_load_;
  const at::Tensor value_ = at::full({1}, 0.0F);
};

std::unique_ptr<HostedTask> one_sample(std::function<void()> on_load = {},
                                       const ComputeDevice& device = host_device()) {
  return std::make_unique<HostedTask>(std::make_unique<OneSample>(std::move(on_load)), v1::Declaration{},
                                      /*seed=*/1, device);
}

TEST(AsyncEvaluation, IsOfTheParametersItBeganWithAndHoldsNobodyUp) {
  std::latch let_go(1);
  testing::run_ranks(2, [&](int rank, Communicator& communicator, Progress& progress) {
    AsyncEvaluation evaluation(
        [&]() -> Result<std::unique_ptr<HostedTask>> {
          return one_sample([&let_go, rank] {
            if (rank == 1) let_go.wait();  // its evaluation waits to be let go
          });
        },
        &progress);
    const auto training = one_sample();
    at::Tensor parameter = training->parameters().front().tensor;
    parameter.fill_(3.0F);
    evaluation.start(5, *training, communicator, {0, 1, EvalMode::all});
    parameter.fill_(100.0F);  // training goes on
    EXPECT_TRUE(evaluation.under_way());
    EXPECT_EQ(progress.evaluated_step(), 5);
    if (rank == 1) {
      EXPECT_FALSE(evaluation.ready());
      let_go.count_down();
    }
    const auto result = evaluation.finish(communicator, *training, {[] { return false; }, {}});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->loss, 3.0);
    EXPECT_EQ(result->batches, 2);
    EXPECT_EQ(evaluation.step(), 5);
    EXPECT_FALSE(evaluation.under_way());
    EXPECT_FALSE(progress.evaluated_step());
  });
}

/// What one rank alone finds, on a task of `make_task`.
Result<EvalResult> evaluated_alone(const AsyncEvaluation::MakeTask& make_task) {
  SimWorld world(1);
  Ledger ledger;
  Progress progress;
  const auto communicator = world.communicator(0, ledger, progress);
  AsyncEvaluation evaluation(make_task);
  const auto training = one_sample();
  evaluation.start(5, *training, *communicator, {});
  return evaluation.finish(*communicator, *training, {[] { return false; }, {}});
}

Result<std::unique_ptr<HostedTask>> no_copy() {
  return fail(ErrorKind::failed, "out of memory");
}

TEST(AsyncEvaluation, WithoutItsCopyThisRanksShareHasFailed) {
  const auto result = evaluated_alone(no_copy);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("out of memory"));
}

TEST(AsyncEvaluation, WithoutTheCopyOfOneRankTheResultIsPartial) {
  testing::run_ranks(2, [](int rank, Communicator& communicator, Progress& progress) {
    AsyncEvaluation evaluation(
        [rank]() -> Result<std::unique_ptr<HostedTask>> {
          if (rank == 1) return no_copy();
          return one_sample();
        },
        &progress);
    const auto training = one_sample();
    evaluation.start(5, *training, communicator, {0, 1, EvalMode::all});
    const auto result = evaluation.finish(communicator, *training, {[] { return false; }, {}});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(result->partial());
    EXPECT_EQ(result->batches, 1);
    EXPECT_EQ(result->batches_wanted, 2);
    EXPECT_THAT(result->reason, HasSubstr("rank 1: out of memory"));
  });
}

TEST(AsyncEvaluation, WhatItsThreadThrowsIsAFailedShare) {
  const auto why = [](const std::function<void()>& on_load, const ComputeDevice& device) {
    const auto result =
        evaluated_alone([&]() -> Result<std::unique_ptr<HostedTask>> { return one_sample(on_load, device); });
    return result ? "" : result.error().message;
  };
  const FaultyDevice failed(host_device(), "GPU-0", [] { return std::optional<std::string>("it is gone"); });
  EXPECT_THAT(why([] { throw std::runtime_error("unspecified launch failure"); }, failed),
              HasSubstr("unspecified launch failure"));
  EXPECT_THAT(why([] { throw 7; }, host_device()), HasSubstr("no std::exception"));
}

TEST(AsyncEvaluation, MakingItsTaskLeavesTheRandomNumbersOfTrainingAsTheyAre) {
  at::manual_seed(5);
  const auto result = evaluated_alone([]() -> Result<std::unique_ptr<HostedTask>> {
    at::manual_seed(1);
    return one_sample();
  });
  EXPECT_TRUE(result) << result.error().message;
  const at::Tensor next = at::rand({4});
  at::manual_seed(5);
  EXPECT_TRUE(at::equal(next, at::rand({4})));
}

}  // namespace
}  // namespace footplate
