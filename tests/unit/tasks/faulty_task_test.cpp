#include "runtime/tasks/faulty_task.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

#include "runtime/tasks/hosted_task.h"

namespace footplate {
namespace {

/// One parameter of ones; a batch is as many ones, the loss their product's sum.
class Ones final : public v1::Task {
 public:
  std::vector<v1::Parameter> parameters() override { return {{"values", values_}}; }
  std::vector<v1::DataSet> data() override { return {{.name = "ones", .training = 64, .held_out = 64}}; }
  v1::Batch load(const v1::Samples& /*samples*/) override {
    return {.tensors = {at::ones({kElements})}, .weight = kElements};
  }
  at::Tensor loss(const v1::Batch& batch, v1::Sums& /*sums*/) override {
    return values_.dot(batch.tensors[0]);
  }

  static constexpr std::int64_t kElements = 3;

 private:
  const at::Tensor values_ = at::ones({kElements}).requires_grad_(true);
};

class FaultyTaskTest : public ::testing::Test {
 protected:
  ~FaultyTaskTest() override { ::unsetenv("FOOTPLATE_FAULT"); }

  void with(const char* faults) {
    ::setenv("FOOTPLATE_FAULT", faults, 1);
    auto faulty = std::make_unique<FaultyTask>(std::make_unique<Ones>(), step_, /*rank=*/1);
    faulty_ = faulty.get();
    task_ = std::make_unique<HostedTask>(std::move(faulty), v1::Declaration{}, /*seed=*/1, host_device());
  }
  const at::Tensor& values() const { return task_->parameters()[0].tensor; }

  /// Forward and backward of `step` with so many samples: its loss. The gradient is added to what there was.
  double train(std::int64_t step, std::int64_t samples = 1) {
    step_ = step;
    faulty_->begin_step();
    const at::Tensor loss = task_->loss(task_->load({0, {0, samples}}), none_);
    loss.backward();
    return loss.item<double>();
  }
  double gradient(std::int64_t element) { return values().grad()[element].item<double>(); }
  /// A try of an evaluation of `samples` samples; false: it threw.
  bool evaluate(std::int64_t samples, std::int64_t batch_size) {
    const at::NoGradGuard no_grad;
    try {
      for (std::int64_t first = 0; first < samples; first += batch_size) {
        std::vector<std::int64_t> numbers;
        for (std::int64_t i = first; i < std::min(first + batch_size, samples); ++i) numbers.push_back(i);
        evaluated_ = task_->evaluate(task_->load_held_out(0, numbers), none_).item<double>();
      }
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  std::int64_t step_ = 0;
  std::unique_ptr<HostedTask> task_;
  FaultyTask* faulty_ = nullptr;  ///< in it
  const SumsLayout layout_{{}, {}};
  RowOfSums none_{layout_, at::zeros({0}), true};
  double evaluated_ = 0;
};

TEST_F(FaultyTaskTest, ANanAmongTheGradientsLeavesTheLossAsItIs) {
  with("nan_grad:rank=1:step=7");
  EXPECT_EQ(train(6), 3);
  EXPECT_EQ(gradient(0), 1);
  EXPECT_EQ(train(7), 3);
  EXPECT_TRUE(std::isnan(gradient(0)));
  EXPECT_EQ(gradient(1), 2) << "of both steps";
}

TEST_F(FaultyTaskTest, ANanInPlaceOfTheLossLeavesTheGradientsAsTheyAre) {
  with("nan_loss:step=7:times=2");
  for (const std::int64_t step : {6, 7, 8, 9})
    EXPECT_EQ(std::isnan(train(step)), step == 7 || step == 8) << step;
  EXPECT_EQ(gradient(0), 4);
}

TEST_F(FaultyTaskTest, AStepThrowsAndEvaluationsDont) {
  with("step_throw:step=5");
  EXPECT_EQ(train(4), 3);
  EXPECT_THROW(train(5), std::runtime_error);
  EXPECT_TRUE(evaluate(4, 4));
}

TEST_F(FaultyTaskTest, MemoryIsShortFromAStepOnForMoreThanSoManySamples) {
  with("step_oom:step=5:above=8");
  EXPECT_EQ(train(4, 9), 3);
  EXPECT_ANY_THROW(train(5, 9));
  EXPECT_ANY_THROW(train(6, 9));
  EXPECT_EQ(train(6, 8), 3);
}

TEST_F(FaultyTaskTest, ABitIsFlippedOnceAsTheNextStepBegins) {
  with("flip_bit:step=5");
  EXPECT_EQ(train(5), 3);
  EXPECT_EQ(train(6), 2 + 1.5);
  EXPECT_EQ(train(6), 2 + 1.5) << "the step is done again";
  EXPECT_EQ(train(7), 2 + 1.5);
}

TEST_F(FaultyTaskTest, AnEvaluationThrowsTheFirstTimes) {
  with("eval_throw:tries=2");
  for (int evaluation = 0; evaluation < 2; ++evaluation) {
    EXPECT_FALSE(evaluate(16, 8));
    EXPECT_FALSE(evaluate(16, 4));
    EXPECT_TRUE(evaluate(16, 2));
  }
}

TEST_F(FaultyTaskTest, AnEvaluationThrowsWithBatchesThatAreTooLarge) {
  with("eval_throw:above=4");
  EXPECT_FALSE(evaluate(16, 8));
  EXPECT_TRUE(evaluate(16, 4));
  EXPECT_EQ(evaluated_, 3);
}

TEST_F(FaultyTaskTest, AnEvaluationsLossIsANan) {
  with("eval_nan:rank=1");
  EXPECT_TRUE(evaluate(4, 4));
  EXPECT_TRUE(std::isnan(evaluated_));
  EXPECT_EQ(train(0), 3);
}

TEST_F(FaultyTaskTest, AFaultOfAnotherRankChangesNothing) {
  with("eval_throw:rank=0,step_throw:rank=0,nan_grad:rank=0,flip_bit:rank=0");
  EXPECT_TRUE(evaluate(4, 4));
  EXPECT_EQ(train(0), 3);
  EXPECT_EQ(train(1), 3);
  EXPECT_EQ(gradient(0), 2);
}

}  // namespace
}  // namespace footplate
