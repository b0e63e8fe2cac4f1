#include "runtime/optim/optimizer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/optim/muon.h"

namespace footplate {
namespace {

constexpr double kRate = 0.1;

at::Tensor one_float(double value) {
  return at::full({}, value, at::kFloat);
}

v1::Parameter parameter(std::string name, const at::Tensor& values, std::string group = {}) {
  at::Tensor leaf = values.clone().requires_grad_(true);
  leaf.mutable_grad() = at::zeros_like(leaf);
  return {std::move(name), leaf, std::move(group)};
}

/// An optimizer of one or more parameters, and its steps.
class Optimized {
 public:
  Optimized(OptimizerKind kind, std::vector<v1::Parameter> parameters,
            const std::vector<v1::Group>& groups = {})
      : parameters_(std::move(parameters)),
        optimizer_(make_optimizer(kind, parameters_, groups, host_device())) {
    set_learning_rate(kRate);
  }

  void take_parameters() { optimizer_->take_parameters(); }
  void set_learning_rate(double rate) { optimizer_->set_learning_rate(rate); }

  OptimizerSettings settings{.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .momentum = 0.8};

  /// With that gradient in all elements of all parameters, times `divisor`, by which it is divided.
  void step(double gradient, double divisor = 1, bool skip = false) {
    for (v1::Parameter& parameter : parameters_) parameter.tensor.mutable_grad().fill_(gradient * divisor);
    optimizer_->step(settings, one_float(divisor), one_float(skip ? 1 : 0));
  }
  void step_with(const at::Tensor& gradient) {
    parameters_[0].tensor.mutable_grad().copy_(gradient);
    optimizer_->step(settings, one_float(1), one_float(0));
  }
  double value(std::size_t parameter = 0) const {
    return parameters_[parameter].tensor.detach().flatten()[0].item<double>();
  }
  at::Tensor values(std::size_t parameter = 0) const {
    return parameters_[parameter].tensor.detach().clone();
  }
  std::vector<std::string> state() const {
    StateTable table;
    optimizer_->list_state(table);
    std::vector<std::string> names;
    for (const StateEntry& entry : table.entries()) names.push_back(entry.name);
    return names;
  }

 private:
  std::vector<v1::Parameter> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
};

TEST(Optimizer, SgdHasMomentum) {
  Optimized sgd(OptimizerKind::sgd, {parameter("a", at::ones({4}))});
  sgd.step(1, /*divisor=*/8);
  EXPECT_NEAR(sgd.value(), 1 - kRate, 1e-6);
  sgd.step(1);
  EXPECT_NEAR(sgd.value(), 1 - kRate - kRate * 1.8, 1e-6);
  EXPECT_THAT(sgd.state(), ::testing::ElementsAre("optim/momentum/a"));
}

/// Each step is a twentieth of what bfloat16 tells apart below 1.
TEST(Optimizer, SmallStepsAddUpInTheMasterOfAParameterInBf16) {
  constexpr double kSmall = 1e-4;
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::lion, OptimizerKind::adamw}) {
    v1::Parameter narrow = parameter("narrow", at::ones({2, 2}));
    narrow.tensor.set_data(narrow.tensor.detach().to(at::kBFloat16));
    Optimized of_both(kind, {narrow, parameter("wide", at::ones({2, 2}))});
    of_both.settings.momentum = 0;
    of_both.set_learning_rate(kSmall);
    for (int step = 0; step < 100; ++step)
      of_both.step(kind == OptimizerKind::sgd ? 1 : 0.5, /*divisor=*/1, /*skip=*/step % 2 == 1);
    EXPECT_NEAR(of_both.value(1), 1 - 50 * kSmall, 1e-6);
    EXPECT_EQ(of_both.value(0), of_both.values(1).to(at::kBFloat16).flatten()[0].item<double>());
    EXPECT_THAT(of_both.state(), ::testing::Contains("optim/master/narrow"));
    EXPECT_THAT(of_both.state(), ::testing::Not(::testing::Contains("optim/master/wide")));
  }
}

/// As an action of a task does that sets a layer back.
TEST(Optimizer, AMasterTakesUpWhatSomebodyElseHasWritten) {
  v1::Parameter narrow = parameter("narrow", at::ones({2, 2}));
  narrow.tensor.set_data(narrow.tensor.detach().to(at::kBFloat16));
  at::Tensor value = narrow.tensor.detach();
  Optimized sgd(OptimizerKind::sgd, {narrow});
  sgd.settings.momentum = 0;
  sgd.set_learning_rate(1e-3);
  sgd.step(1);
  value[0][0] = 0.0;
  sgd.take_parameters();
  for (int step = 0; step < 9; ++step) sgd.step(1);
  EXPECT_NEAR(value[0][0].item<double>(), -0.009, 1e-4);
  EXPECT_EQ(value[1][1].item<double>(), at::full({}, 0.99).to(at::kBFloat16).item<double>()) << "as before";
}

TEST(Optimizer, SgdWithoutMomentumFollowsTheGradientAndForgets) {
  for (const bool nesterov : {false, true}) {
    Optimized sgd(OptimizerKind::sgd, {parameter("a", at::ones({4}))});
    sgd.settings.nesterov = nesterov;
    sgd.step(1);
    const double before = sgd.value();
    sgd.settings.momentum = 0;
    sgd.step(1, /*divisor=*/8, /*skip=*/true);
    EXPECT_EQ(sgd.value(), before);
    sgd.step(1, /*divisor=*/8);
    EXPECT_NEAR(sgd.value(), before - kRate, 1e-6);
    sgd.settings.momentum = 0.8;
    sgd.settings.nesterov = false;
    sgd.step(1);
    EXPECT_NEAR(sgd.value(), before - 2 * kRate, 1e-6) << "its mean begins at zero";
  }
}

TEST(Optimizer, NesterovsMomentumLooksAhead) {
  Optimized sgd(OptimizerKind::sgd, {parameter("a", at::ones({4}))});
  sgd.settings.nesterov = true;
  sgd.step(1);
  EXPECT_NEAR(sgd.value(), 1 - kRate * 1.8, 1e-6);
}

TEST(Optimizer, SgdAddsWeightDecayToTheGradientOfMatrices) {
  Optimized sgd(OptimizerKind::sgd,
                {parameter("matrix", at::ones({2, 2})), parameter("vector", at::ones({4}))});
  sgd.settings.weight_decay = 0.5;
  sgd.step(1);
  EXPECT_NEAR(sgd.value(0), 1 - kRate * 1.5, 1e-6);
  EXPECT_NEAR(sgd.value(1), 1 - kRate, 1e-6);
}

TEST(Optimizer, AdamWsFirstStepIsTheLearningRate) {
  Optimized adamw(OptimizerKind::adamw, {parameter("a", at::ones({4}))});
  adamw.step(-37);
  EXPECT_NEAR(adamw.value(), 1 + kRate, 1e-5);
  EXPECT_THAT(adamw.state(), ::testing::ElementsAre("optim/exp_avg/a", "optim/exp_avg_sq/a", "optim/step"));
}

TEST(Optimizer, LionMovesBySignsAndDecaysApart) {
  Optimized lion(OptimizerKind::lion, {parameter("matrix", at::ones({2, 2}))});
  lion.settings.weight_decay = 0.5;
  lion.step(37);
  EXPECT_NEAR(lion.value(), 1 - kRate * 0.5 - kRate, 1e-6);
  // 0.01 of 37 is remembered: it outweighs a small gradient of the other sign, and a larger one outweighs it.
  const double before = lion.value();
  lion.settings.weight_decay = 0;
  lion.step(-1);
  EXPECT_NEAR(lion.value(), before - kRate, 1e-6);
  lion.step(-10);
  EXPECT_NEAR(lion.value(), before, 1e-6);
  EXPECT_THAT(lion.state(), ::testing::ElementsAre("optim/momentum/matrix"));
}

TEST(Optimizer, OrthogonalizedMatricesHaveSingularValuesNearOne) {
  at::manual_seed(5);
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{16, 64}, {64, 16}, {32, 32}}) {
    const at::Tensor values = at::linalg_svdvals(orthogonalized(at::randn(shape).mul(1e-3)));
    EXPECT_LT(values.max().item<double>(), 1.3);
    EXPECT_GT(values.median().item<double>(), 0.6);
  }
}

TEST(Optimizer, MuonMovesMatricesByAnOrthogonalUpdate) {
  at::manual_seed(5);
  Optimized muon(OptimizerKind::muon, {parameter("matrix", at::ones({16, 64}))});
  muon.step_with(at::randn({16, 64}).mul(100));
  const at::Tensor update = muon.values().sub(1);
  // As long as an update of AdamW's usually is: 0.2 of the learning rate in each element.
  EXPECT_NEAR(update.square().mean().sqrt().item<double>(), 0.2 * kRate, 0.04 * kRate);
  EXPECT_THAT(muon.state(), ::testing::ElementsAre("optim/momentum/matrix", "optim/step"));
}

TEST(Optimizer, MuonTakesAConvolutionAsAMatrix) {
  at::manual_seed(5);
  Optimized muon(OptimizerKind::muon, {parameter("kernels", at::ones({8, 4, 3, 3}))});
  muon.step_with(at::randn({8, 4, 3, 3}));
  EXPECT_GT(muon.values().sub(1).abs().max().item<double>(), 0);
}

TEST(Optimizer, MuonLeavesVectorsAndTablesToAdamW) {
  Optimized muon(OptimizerKind::muon,
                 {parameter("matrix", at::ones({2, 2})), parameter("vector", at::ones({4})),
                  parameter("table", at::ones({2, 2}), "tables")},
                 {{.name = "tables", .is_table = true}});
  muon.step(-37);
  EXPECT_NEAR(muon.value(1), 1 + kRate, 1e-5);
  EXPECT_NEAR(muon.value(2), 1 + kRate, 1e-5);
  EXPECT_THAT(muon.state(), ::testing::UnorderedElementsAre("optim/momentum/matrix", "optim/exp_avg/vector",
                                                            "optim/exp_avg_sq/vector", "optim/exp_avg/table",
                                                            "optim/exp_avg_sq/table", "optim/step"));
}

class EveryOptimizer : public ::testing::TestWithParam<OptimizerKind> {};
INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer,
                         ::testing::Values(OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::lion,
                                           OptimizerKind::muon));

TEST_P(EveryOptimizer, ASkippedStepWritesNothing) {
  Optimized skipping(GetParam(), {parameter("matrix", at::ones({2, 2})), parameter("vector", at::ones({4}))});
  Optimized never(GetParam(), {parameter("matrix", at::ones({2, 2})), parameter("vector", at::ones({4}))});
  skipping.settings.weight_decay = never.settings.weight_decay = 0.1;
  skipping.step(1);
  never.step(1);
  skipping.step(std::numeric_limits<double>::quiet_NaN(), 1, /*skip=*/true);
  for (const std::size_t one : {0, 1}) EXPECT_TRUE(skipping.values(one).equal(never.values(one)));
  skipping.step(2);
  never.step(2);
  for (const std::size_t one : {0, 1}) EXPECT_TRUE(skipping.values(one).equal(never.values(one)));
}

TEST_P(EveryOptimizer, AGroupHasItsOwnLearningRateAndDecay) {
  Optimized frozen(GetParam(),
                   {parameter("a", at::ones({2, 2}), "still"), parameter("b", at::ones({2, 2}), "plain"),
                    parameter("c", at::ones({2, 2}))},
                   {{.name = "still", .lr_factor = 0}, {.name = "plain", .weight_decay = 0}});
  frozen.settings.weight_decay = 1;
  frozen.step(0);
  EXPECT_EQ(frozen.value(0), 1) << "a learning rate of zero";
  EXPECT_EQ(frozen.value(1), 1) << "no gradient and no decay";
  EXPECT_NEAR(frozen.value(2), 1 - kRate, 1e-6) << "optim.weight_decay";
}

TEST_P(EveryOptimizer, AGroupThatIsNotDeclaredIsAnError) {
  EXPECT_THROW(Optimized(GetParam(), {parameter("a", at::ones({2}), "heads")}), std::invalid_argument);
}

}  // namespace
}  // namespace footplate
