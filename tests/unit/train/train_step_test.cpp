// Through the trainer's door, on simulated ranks.
#include "runtime/train/train_step.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::metrics_of;
using testing::Rank;
using ::testing::SizeIs;
using testing::small_settings;
using testing::train;
using testing::train_to_failure;

TEST(TrainStep, AStepThatThrowsOnOneRankEndsAllOfThemWithItsReason) {
  setenv("FOOTPLATE_FAULT", "step_throw:rank=1:step=5", 1);
  const auto messages = train_to_failure(3, small_settings());
  unsetenv("FOOTPLATE_FAULT");
  EXPECT_THAT(messages, Each(AllOf(HasSubstr("step 5 failed"), HasSubstr("rank 1: injected"))));
}

/// A task with a learning rate of its own.
class OwnRate final : public v1::Task {
 public:
  explicit OwnRate(std::function<double(std::int64_t step)> rate) : rate_(std::move(rate)) {}
  std::vector<v1::Parameter> parameters() override { return {{"values", values_}}; }
  std::vector<v1::DataSet> data() override { return {{.name = "ones", .training = 64}}; }
  v1::Batch load(const v1::Samples& /*samples*/) override {
    return {.tensors = {at::ones({3})}, .weight = 3};
  }
  at::Tensor loss(const v1::Batch& batch, v1::Sums& /*sums*/) override {
    return values_.dot(batch.tensors[0]);
  }
  std::optional<double> learning_rate(std::int64_t step) const override { return rate_(step); }

 private:
  const std::function<double(std::int64_t step)> rate_;
  const at::Tensor values_ = at::ones({3}).requires_grad_(true);
};

/// Why two ranks fail whose learning rate is `rate` from step 5 on, on rank 1.
std::vector<std::string> failures_with(const std::function<double()>& rate) {
  std::vector<std::string> messages(2);
  testing::run_ranks(2, [&](int rank, Communicator& communicator, Progress& progress) {
    const Settings settings = small_settings({"run.task=synthetic"});
    TrainerOptions options{settings, communicator, progress, 2, nullptr, nullptr, {}};
    options.wrap_task = [&rate, rank](std::unique_ptr<v1::Task>) {
      return std::make_unique<OwnRate>(
          [&rate, rank](std::int64_t step) { return rank == 1 && step >= 5 ? rate() : 0.1; });
    };
    const auto trainer = Trainer::create(std::move(options));
    ASSERT_TRUE(trainer) << trainer.error().message;
    testing::FreeGate gate(settings, **trainer);
    gate.change_at(5, "log.every", std::int64_t{2});  // the rates before and after it are compared
    const auto ending = (*trainer)->run(gate);
    ASSERT_FALSE(ending);
    EXPECT_TRUE((*trainer)->failed_together());
    messages[static_cast<std::size_t>(rank)] = ending.error().message;
  });
  return messages;
}

TEST(TrainStep, ALearningRateOfTheTaskThatIsNoneFailsTheStepOnAllRanks) {
  EXPECT_THAT(failures_with([]() -> double { throw std::runtime_error("no rate"); }),
              Each(AllOf(HasSubstr("step 5 failed"), HasSubstr("rank 1: no rate"))));
  EXPECT_THAT(failures_with([] { return std::numeric_limits<double>::infinity(); }),
              Each(AllOf(HasSubstr("step 5 failed"), HasSubstr("rank 1: learning_rate() gave inf"))));
}

/// What a run of two ranks showed, with a fault.
struct Shown {
  std::map<std::int64_t, std::set<std::uint64_t>> hashes;  ///< by step
  std::vector<Json> lines, warnings;                       ///< rank 0's
  std::multiset<int> pauses;                               ///< of each rank
};

Shown train_with(const char* faults, std::vector<std::string> assignments) {
  assignments.insert(assignments.end(), {"log.every=10", "log.perf_every=10", "log.detail_every=10"});
  Shown shown;
  std::mutex mutex;
  setenv("FOOTPLATE_FAULT", faults, 1);
  const auto record = [](Rank& rank) {
    rank.gate.hash_state = [&rank] { return rank.trainer.state().hash(); };
  };
  train(2, small_settings(assignments), record, [&](Rank& rank) {
    const std::lock_guard lock(mutex);
    for (const auto& [step, hash] : rank.gate.hashes) shown.hashes[step].insert(hash);
    shown.pauses.insert(rank.gate.pauses);
    if (rank.communicator.rank() != 0) return;
    shown.lines = rank.sink.lines;
    shown.warnings = rank.gate.events["warn"];
  });
  unsetenv("FOOTPLATE_FAULT");
  return shown;
}

TEST(TrainStep, AStepThatIsNotFiniteWritesNothingAndCounts) {
  for (const char* kind : {"nan_grad", "nan_loss"}) {
    for (const char* clipping : {"train.clip_norm=1", "train.clip_norm=0"}) {
      const auto shown = train_with((kind + std::string(":rank=1:step=6")).c_str(), {clipping});
      for (const auto& [step, hashes] : shown.hashes) EXPECT_THAT(hashes, SizeIs(1)) << step;
      EXPECT_NE(shown.hashes.at(5), shown.hashes.at(6));
      EXPECT_EQ(shown.hashes.at(6), shown.hashes.at(7))
          << "after step 6 parameters and moments are as before";
      EXPECT_NE(shown.hashes.at(7), shown.hashes.at(8));
      EXPECT_EQ(shown.lines.at(0).at("guard/nonfinite"), 1);
      EXPECT_EQ(shown.lines.at(0).at("train/epoch"), metrics_of(2, {}).back().at("train/epoch"));
      ASSERT_THAT(shown.warnings, SizeIs(1));
      EXPECT_THAT(shown.warnings[0].at("text").get<std::string>(),
                  AllOf(HasSubstr("skipped, 1 in a row"),
                        HasSubstr(kind == std::string("nan_loss") ? "the loss isn't" : "gradients aren't")));
    }
  }
}

TEST(TrainStep, OnlyThreeStepsInARowThatAreNotFiniteEndTheRun) {
  const auto apart = train_with("nan_grad:rank=0:step=2:times=2,nan_grad:rank=1:step=5:times=2", {});
  EXPECT_EQ(apart.lines.at(0).at("guard/nonfinite"), 4);
  EXPECT_THAT(apart.warnings, SizeIs(2));

  setenv("FOOTPLATE_FAULT", "nan_grad:rank=1:step=4:times=3", 1);
  for (const char* kind : {"skip", "pause"}) {
    const auto messages = train_to_failure(2, small_settings({std::string("guard.nonfinite=") + kind}));
    EXPECT_THAT(messages,
                Each(AllOf(HasSubstr("step 6 failed: gradients aren't finite (norm nan), 3 in a row"),
                           HasSubstr("parameters are as step 4 left them"))));
  }
  const auto messages = train_to_failure(2, small_settings({"guard.nonfinite=stop"}));
  EXPECT_THAT(messages, Each(HasSubstr("step 4 failed: gradients aren't finite")));
  unsetenv("FOOTPLATE_FAULT");
}

TEST(TrainStep, EveryRankPausesAfterAStepThatIsNotFinite) {
  const auto shown = train_with("nan_grad:rank=1:step=4:times=2", {"guard.nonfinite=pause"});
  EXPECT_EQ(shown.pauses, (std::multiset<int>{2, 2}));
  EXPECT_EQ(shown.hashes.at(4), shown.hashes.at(6));
  EXPECT_THAT(shown.warnings, SizeIs(2));
}

}  // namespace
}  // namespace footplate
