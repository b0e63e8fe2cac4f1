#include "runtime/train/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "runtime/comm/sim/sim_world.h"
#include "runtime/tasks/faulty_task.h"

namespace footplate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Of a rank, at a batch of so many samples: throws, or gives what is wrong with its loss.
using Trouble = std::function<float(int rank, std::size_t samples)>;

constexpr std::int64_t kHeldOut = 101;

/// Counts which held-out samples were asked for; sample i's loss is i.
class CountingTask final : public v1::Task {
 public:
  CountingTask(int rank, const Trouble& trouble) : rank_(rank), trouble_(trouble) {}

  std::vector<v1::Parameter> parameters() override { return {{"none", none_}}; }
  std::vector<v1::DataSet> data() override {
    return {{.name = "numbers", .training = 1, .held_out = kHeldOut}};
  }
  v1::Batch load(const v1::Samples& samples) override {
    EXPECT_FALSE(at::GradMode::is_enabled());
    EXPECT_TRUE(samples.held_out);
    const auto count = samples.indexes.size();
    float sum = trouble_ ? trouble_(rank_, count) : 0;
    for (const std::int64_t sample : samples.indexes) {
      ++seen[sample];
      sum += static_cast<float>(sample);
    }
    largest_batch = std::max(largest_batch, count);
    const at::Tensor losses = at::full({static_cast<std::int64_t>(count)}, sum / static_cast<float>(count));
    return {.tensors = {losses}, .weight = static_cast<double>(count)};
  }
  at::Tensor loss(const v1::Batch& batch, v1::Sums& sums) override {
    const at::Tensor loss = batch.tensors[0].sum();
    sums.add("twice", loss.mul(2));
    sums.add("count", at::full({}, batch.weight));
    return loss;
  }
  static v1::Declaration declare() {
    return {.metrics = {{.name = "count", .mean = false}, {.name = "twice"}}};
  }

  std::map<std::int64_t, int> seen;
  std::size_t largest_batch = 0;

 private:
  int rank_;
  const Trouble& trouble_;
  const at::Tensor none_ = at::zeros({1}).requires_grad_(true);
};

struct Outcome {
  std::map<std::int64_t, int> seen;  ///< over all ranks
  std::vector<Result<EvalResult>> results;
  std::vector<LocalEvaluation> local;  ///< of the ranks that have kept one
};

Outcome evaluate_on(int world_size, const EvalPlan& plan, const Trouble& trouble = {},
                    int abandoning_rank = -1, const std::function<Result<void>()>& meet = {}) {
  SimWorld world(world_size);
  Outcome outcome;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      Ledger ledger;
      Progress progress;
      auto owned = std::make_unique<CountingTask>(rank, trouble);
      CountingTask& counted = *owned;
      const std::int64_t step = 0;
      HostedTask task(std::make_unique<FaultyTask>(std::move(owned), step, rank), CountingTask::declare(),
                      /*seed=*/1, host_device());
      const auto communicator = world.communicator(rank, ledger, progress);
      std::optional<LocalEvaluation> local;
      auto result = evaluate(task, *communicator, plan,
                             {[&] { return rank == abandoning_rank; }, meet,
                              [&](const LocalEvaluation& kept) { local = kept; }});
      if (meet && !result) {
        EXPECT_EQ(ledger.newest(), 0U) << "nothing is reduced";
      }
      const std::lock_guard lock(mutex);
      for (const auto& [sample, times] : counted.seen) outcome.seen[sample] += times;
      EXPECT_LE(counted.largest_batch, static_cast<std::size_t>(plan.batch_size));
      outcome.results.push_back(std::move(result));
      if (local) outcome.local.push_back(*local);
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
      EXPECT_NEAR(result->metrics.all.declared.at("twice"), 100.0, 1e-5) << "a mean";
      EXPECT_EQ(result->metrics.all.declared.at("count"), kHeldOut) << "a sum";
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

TEST(Evaluation, CountsTheBatchesThatWereAskedForOnAnyNumberOfRanks) {
  for (const int world_size : {1, 2, 3, 4})
    for (const auto& result : evaluate_on(world_size, {3, 8, EvalMode::all}).results) {
      ASSERT_TRUE(result) << result.error().message;
      EXPECT_EQ(result->batches, 3) << world_size << " ranks";
      EXPECT_EQ(result->tokens, 24);
      EXPECT_FALSE(result->partial());
    }
}

TEST(Evaluation, MoreBatchesThanThereAreIsEverything) {
  EXPECT_EQ(evaluate_on(2, {1000, 8, EvalMode::all}).seen.size(), static_cast<std::size_t>(kHeldOut));
}

TEST(Evaluation, OneRankAloneGivesAllRanksItsResult) {
  const Outcome outcome = evaluate_on(3, {0, 8, EvalMode::one});
  EXPECT_EQ(outcome.seen.size(), static_cast<std::size_t>(kHeldOut));
  for (const auto& result : outcome.results) EXPECT_NEAR(result->loss, 50.0, 1e-5);
}

TEST(Evaluation, WhatThrowsOnOneRankIsTriedBySmallerBatchesOnAll) {
  const std::function<void()> kinds[] = {[] { throw std::bad_alloc(); },
                                         [] { C10_THROW_ERROR(OutOfMemoryError, "no room"); }};
  for (const auto& throw_it : kinds) {
    const Outcome outcome = evaluate_on(3, {0, 8, EvalMode::all}, [&](int rank, std::size_t samples) {
      if (rank == 1 && samples > 2) throw_it();
      return 0.0F;
    });
    for (const auto& result : outcome.results) {
      ASSERT_TRUE(result) << result.error().message;
      EXPECT_EQ(result->retries, 2);  // 8, 4, 2
      EXPECT_FALSE(result->partial());
      EXPECT_EQ(result->tokens, kHeldOut);
      EXPECT_NEAR(result->loss, 50.0, 1e-5);
      EXPECT_THAT(result->reason, HasSubstr("rank 1: "));
    }
  }
}

TEST(Evaluation, WhatThrowsForOtherReasonsIsTriedAgainOnce) {
  std::atomic<int> tries{0};
  const Outcome passing = evaluate_on(3, {0, 8, EvalMode::all}, [&](int rank, std::size_t) {
    if (rank == 1 && tries++ == 0) throw std::runtime_error("odd");
    return 0.0F;
  });
  for (const auto& result : passing.results) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->retries, 1);
    EXPECT_FALSE(result->partial());
  }
  tries = 0;
  const Outcome lasting = evaluate_on(3, {0, 8, EvalMode::all}, [&](int rank, std::size_t) {
    if (rank != 1) return 0.0F;
    ++tries;
    throw std::runtime_error("odd");
  });
  EXPECT_EQ(tries, 2);
  for (const auto& result : lasting.results) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(result->partial());
  }
}

TEST(Evaluation, ARankThatFailsAgainAndAgainIsLeftOutOfAPartialResult) {
  std::atomic<int> tries{0};
  const Outcome outcome = evaluate_on(3, {0, 8, EvalMode::all}, [&](int rank, std::size_t) {
    if (rank != 1) return 0.0F;
    ++tries;
    throw std::bad_alloc();
  });
  EXPECT_EQ(tries, 4);
  const Slice left_out = slice_of(kHeldOut, 1, 3);
  const double sum = kHeldOut * (kHeldOut - 1) / 2.0 -
                     static_cast<double>((left_out.first + left_out.last - 1) * left_out.size()) / 2;
  for (const auto& result : outcome.results) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(result->partial());
    EXPECT_EQ(result->retries, 3);
    EXPECT_EQ(result->tokens, kHeldOut - left_out.size());
    EXPECT_EQ(result->batches, result->tokens / 8);  // as it was asked for, though of one sample each by now
    EXPECT_EQ(result->batches_wanted, (kHeldOut + 7) / 8);
    EXPECT_NEAR(result->loss, sum / static_cast<double>(result->tokens), 1e-5);
  }
}

TEST(Evaluation, WhatLacksMemoryOnAllRanksHasFailed) {
  const Outcome outcome =
      evaluate_on(3, {0, 8, EvalMode::all}, [](int, std::size_t) -> float { throw std::bad_alloc(); });
  for (const auto& result : outcome.results)
    EXPECT_THAT(result ? "" : result.error().message,
                HasSubstr("evaluation failed 4 times, with ever smaller batches: ranks 0, 1, 2: "));
}

TEST(Evaluation, WhatThrowsOnAllRanksHasFailed) {
  for (const EvalMode mode : {EvalMode::all, EvalMode::one}) {
    setenv("FOOTPLATE_FAULT", mode == EvalMode::all ? "eval_throw" : "eval_throw:rank=0", 1);
    const Outcome outcome = evaluate_on(3, {0, 8, mode});
    unsetenv("FOOTPLATE_FAULT");
    for (const auto& result : outcome.results) {
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().kind, ErrorKind::failed);
      EXPECT_THAT(result.error().message,
                  AllOf(HasSubstr("failed 2 times: "),
                        HasSubstr(mode == EvalMode::all ? "ranks 0, 1, 2: injected" : "rank 0: injected")));
    }
  }
}

TEST(Evaluation, ALossThatIsNotFiniteHasFailedAndIsNotTriedAgain) {
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const Outcome outcome =
        evaluate_on(3, {0, 8, EvalMode::all}, [&](int rank, std::size_t) { return rank == 2 ? odd : 0.0F; });
    for (const auto& [sample, times] : outcome.seen) EXPECT_EQ(times, 1) << sample;
    for (const auto& result : outcome.results) {
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().kind, ErrorKind::failed);
      EXPECT_THAT(result.error().message, HasSubstr("its loss isn't finite"));
    }
  }
}

TEST(Evaluation, GivenUpByOneIsGivenUpByAll) {
  const Trouble trouble = [](int rank, std::size_t) {
    if (rank == 1) throw std::bad_alloc();
    return 0.0F;
  };
  for (const Trouble& other : {Trouble{}, trouble}) {
    for (const auto& result : evaluate_on(3, {0, 8, EvalMode::all}, other, 2).results) {
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().kind, ErrorKind::refused);
    }
  }
}

TEST(Evaluation, IsSkippedByAllRanksWhereOneDoesNotComeAndKeepsTheLocalLoss) {
  const auto nobody_waits = [] { return fail(ErrorKind::timed_out, "rank 1 didn't come"); };
  const Outcome outcome = evaluate_on(3, {0, 8, EvalMode::all}, {}, -1, nobody_waits);
  for (const auto& result : outcome.results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::timed_out);
    EXPECT_EQ(result.error().message, "evaluation skipped: rank 1 didn't come");
  }
  ASSERT_EQ(outcome.local.size(), 3U) << "each rank has its own";
  double counted = 0;
  for (const LocalEvaluation& local : outcome.local) {
    EXPECT_NEAR(local.metrics.all.declared.at("twice"), 2 * local.loss, 1e-5);
    counted += local.metrics.all.declared.at("count");
  }
  EXPECT_EQ(counted, kHeldOut);
}

TEST(Evaluation, KeepsNothingLocalWhereTheRanksReduceOrARankHasNoResult) {
  EXPECT_TRUE(evaluate_on(3, {0, 8, EvalMode::all}).local.empty());
  const auto nobody_waits = [] { return fail(ErrorKind::timed_out, "rank 1 didn't come"); };
  const Trouble trouble = [](int rank, std::size_t) {
    if (rank == 1) throw std::bad_alloc();
    return 0.0F;
  };
  EXPECT_EQ(evaluate_on(3, {0, 8, EvalMode::all}, trouble, -1, nobody_waits).local.size(), 2U);
  EXPECT_EQ(evaluate_on(3, {0, 8, EvalMode::one}, {}, -1, nobody_waits).local.size(), 1U) << "rank 0 alone";
}

TEST(Evaluation, MeetsBeforeEachReduction) {
  std::atomic<int> meetings{0};
  const auto meet = [&]() -> Result<void> {
    ++meetings;
    return {};
  };
  const auto outcome = evaluate_on(
      3, {0, 8, EvalMode::all},
      [](int, std::size_t samples) {
        if (samples > 4) throw std::bad_alloc();
        return 0.0F;
      },
      -1, meet);
  for (const auto& result : outcome.results) EXPECT_TRUE(result) << result.error().message;
  EXPECT_EQ(meetings, 3 * 2) << "the second try has its own";
}

}  // namespace
}  // namespace footplate
