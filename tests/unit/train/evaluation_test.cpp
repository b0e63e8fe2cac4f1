#include "runtime/train/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/comm/sim/communicator.h"
#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kHeldOut = 101;

/// Counts which held-out samples were asked for; sample i's loss is i.
class CountingTask : public Task {
 public:
  const std::vector<Parameter>& parameters() const override { return parameters_; }
  at::Tensor load(Slice) override { return {}; }
  at::Tensor load_held_out(std::span<const std::int64_t> samples) override {
    EXPECT_FALSE(at::GradMode::is_enabled());
    float sum = 0;
    for (const std::int64_t sample : samples) {
      ++seen[sample];
      sum += static_cast<float>(sample);
    }
    largest_batch = std::max(largest_batch, samples.size());
    return at::full({static_cast<std::int64_t>(samples.size())}, sum / static_cast<float>(samples.size()));
  }
  std::int64_t held_out_samples() const override { return kHeldOut; }
  Loss loss(const at::Tensor& batch) override { return {batch.sum(), batch.numel()}; }
  double samples_per_epoch() const override { return 1; }

  std::map<std::int64_t, int> seen;
  std::size_t largest_batch = 0;

 private:
  std::vector<Parameter> parameters_;
};

struct Outcome {
  std::map<std::int64_t, int> seen;  ///< over all ranks
  std::vector<Result<EvalResult>> results;
};

Outcome evaluate_on(int world_size, const EvalPlan& plan, int abandoning_rank = -1) {
  SimWorld world(world_size);
  Outcome outcome;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      Ledger ledger;
      Progress progress;
      CountingTask task;
      const auto communicator = world.communicator(rank, ledger, progress);
      auto result = evaluate(task, *communicator, plan, [&] { return rank == abandoning_rank; });
      const std::lock_guard lock(mutex);
      for (const auto& [sample, times] : task.seen) outcome.seen[sample] += times;
      EXPECT_LE(task.largest_batch, static_cast<std::size_t>(plan.batch_size));
      outcome.results.push_back(std::move(result));
    });
  }
  for (auto& thread : threads) thread.join();
  return outcome;
}

TEST(Evaluation, EverySampleCountsOnceOnAnyNumberOfRanks) {
  for (const int world_size : {1, 2, 3, 7}) {
    const Outcome outcome = evaluate_on(world_size, {0, 8, EvalMode::all});
    EXPECT_EQ(outcome.seen.size(), static_cast<std::size_t>(kHeldOut));
    for (const auto& [sample, times] : outcome.seen) EXPECT_EQ(times, 1) << sample;
    for (const auto& result : outcome.results) {
      ASSERT_TRUE(result) << result.error().message;
      EXPECT_EQ(result->tokens, kHeldOut);
      EXPECT_NEAR(result->loss, 50.0, 1e-5);
    }
  }
}

TEST(Evaluation, AFewBatchesAreTheSameEvenlySpreadSamplesOnAnyNumberOfRanks) {
  const Outcome one = evaluate_on(1, {5, 4, EvalMode::all});
  EXPECT_EQ(one.seen.size(), 20u);
  EXPECT_LT(one.seen.begin()->first, 5);
  EXPECT_GT(one.seen.rbegin()->first, 90);
  EXPECT_EQ(evaluate_on(3, {5, 4, EvalMode::all}).seen, one.seen);
}

TEST(Evaluation, MoreBatchesThanThereAreIsEverything) {
  EXPECT_EQ(evaluate_on(2, {1000, 8, EvalMode::all}).seen.size(), static_cast<std::size_t>(kHeldOut));
}

TEST(Evaluation, OneRankAloneGivesAllRanksItsResult) {
  const Outcome outcome = evaluate_on(3, {0, 8, EvalMode::one});
  EXPECT_EQ(outcome.seen.size(), static_cast<std::size_t>(kHeldOut));
  for (const auto& result : outcome.results) EXPECT_NEAR(result->loss, 50.0, 1e-5);
}

TEST(Evaluation, WhatThrowsOnOneRankHasFailedOnAll) {
  setenv("FOOTPLATE_FAULT", "eval_throw:rank=1", 1);
  const Outcome outcome = evaluate_on(3, {0, 8, EvalMode::all});
  unsetenv("FOOTPLATE_FAULT");
  for (const auto& result : outcome.results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::failed);
    EXPECT_THAT(result.error().message, HasSubstr("rank 1: injected"));
  }
}

TEST(Evaluation, GivenUpByOneIsGivenUpByAll) {
  for (const auto& result : evaluate_on(3, {0, 8, EvalMode::all}, 2).results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::refused);
  }
}

TEST(Evaluation, OfAModelIsTheSameOnAnyNumberOfRanks) {
  std::map<int, double> losses;
  for (const int world_size : {1, 3}) {
    testing::train(world_size, testing::small_settings(), [&](testing::Rank& rank) {
      const auto result = rank.trainer.call({"eval.now", Json::object()}, 0);
      ASSERT_TRUE(result) << result.error().message;
      if (rank.communicator.rank() == 0) losses[world_size] = result->at("loss").get<double>();
    });
  }
  EXPECT_NEAR(losses[1], losses[3], 1e-6);
  EXPECT_NEAR(losses[1], 5.545, 0.1);  // ln 256: nothing learned yet
}

TEST(Evaluation, TheLastOneOfAFinishedRunIsOfEverything) {
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

TEST(Evaluation, AFailedOneIsRecordedAndTrainingGoesOnUnchanged) {
  const auto undisturbed = testing::train(2, testing::small_settings());
  setenv("FOOTPLATE_FAULT", "eval_throw:rank=1", 1);
  const auto hashes =
      testing::train(2, testing::small_settings({"eval.every=3"}), {}, [](testing::Rank& rank) {
        if (rank.communicator.rank() != 0) return;
        int failed = 0;
        for (const Json& line : rank.sink.lines) {
          if (!line.contains("eval/evaluation_failed")) continue;
          ++failed;
          EXPECT_EQ(line.at("eval/evaluation_failed"), 1);
          EXPECT_THAT(line.at("eval/reason").get<std::string>(), HasSubstr("rank 1"));
        }
        EXPECT_EQ(failed, 3);  // steps 3, 6 and 9
      });
  unsetenv("FOOTPLATE_FAULT");
  EXPECT_EQ(hashes, undisturbed);
}

}  // namespace
}  // namespace footplate
