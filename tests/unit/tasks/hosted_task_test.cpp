#include "runtime/tasks/hosted_task.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "footplate/module.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

/// Refuses a learning rate of zero when it is too late.
class Late final : public v1::Task {
 public:
  std::vector<v1::Parameter> parameters() override { return {{"values", values_}}; }
  std::vector<v1::DataSet> data() override { return {{.name = "ones", .training = 64}}; }
  v1::Batch load(const v1::Samples& /*samples*/) override {
    return {.tensors = {at::ones({3})}, .weight = 3};
  }
  at::Tensor loss(const v1::Batch& batch, v1::Sums& /*sums*/) override {
    return values_.dot(batch.tensors[0]);
  }
  void changed(const v1::Values& now, std::int64_t /*step*/) override {
    if (now.number("optim.lr_scale") == 0) throw std::runtime_error("no learning without a rate");
  }

 private:
  const at::Tensor values_ = at::ones({3}).requires_grad_(true);
};

TEST(HostedTask, WhatChangedThrowsFailsTheNextStep) {
  HostedTask task(std::make_unique<Late>(), v1::Declaration{}, /*seed=*/1, host_device());
  const SumsLayout layout({}, {});
  RowOfSums none(layout, at::zeros({0}), true);
  const Schema schema = runtime_schema();
  Settings settings = Settings::defaults(schema);
  const auto why = [&] {
    try {
      task.loss(task.load({0, {0, 1}}), none);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  settings.set("optim.lr_scale", 0.0, "test");
  task.changed(settings, 3);
  EXPECT_EQ(why(), "changed(): no learning without a rate");
  settings.set("optim.lr_scale", 1.0, "test");
  task.changed(settings, 4);
  EXPECT_EQ(why(), "");
}

/// Two parameters over the memory of one tensor, from these elements on.
class TwoOfOne final : public v1::Task {
 public:
  explicit TwoOfOne(std::int64_t second) : second_(second) {}
  std::vector<v1::Parameter> parameters() override {
    const auto leaf = [this](std::int64_t first) {
      return values_.narrow(0, first, 2).detach().requires_grad_(true);
    };
    return {{"first", leaf(0)}, {"second", leaf(second_)}};
  }
  std::vector<v1::DataSet> data() override { return {{.name = "none", .training = 1}}; }
  v1::Batch load(const v1::Samples& /*samples*/) override { return {}; }
  at::Tensor loss(const v1::Batch& /*batch*/, v1::Sums& /*sums*/) override { return {}; }

 private:
  const std::int64_t second_;
  const at::Tensor values_ = at::ones({4});
};

/// Counts in training what it declares for evaluations.
class Eager final : public v1::Task {
 public:
  std::vector<v1::Parameter> parameters() override { return {{"values", values_}}; }
  std::vector<v1::DataSet> data() override { return {{.name = "ones", .training = 64, .held_out = 8}}; }
  v1::Batch load(const v1::Samples& /*samples*/) override {
    return {.tensors = {at::ones({3})}, .weight = 3};
  }
  at::Tensor loss(const v1::Batch& batch, v1::Sums& sums) override {
    sums.add("accuracy", at::ones({1}));
    return values_.dot(batch.tensors[0]);
  }

 private:
  const at::Tensor values_ = at::ones({3}).requires_grad_(true);
};

TEST(HostedTask, AMetricOfEvaluationsAloneIsNoneOfTraining) {
  const v1::Declaration declaration{.metrics = {{.name = "accuracy", .in_training = false}}};
  HostedTask task(std::make_unique<Eager>(), declaration, /*seed=*/1, host_device());
  RowOfSums held_out(task.held_out_sums(), at::zeros({task.held_out_sums().size()}), false);
  const std::vector<std::int64_t> samples{0, 1};
  task.evaluate(task.load_held_out(0, samples), held_out);
  EXPECT_EQ(task.sums().size(), 0);
  RowOfSums trained(task.sums(), at::zeros({0}), true);
  try {
    task.loss(task.load({0, {0, 1}}), trained);
    ADD_FAILURE() << "it is counted";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the metric 'accuracy' is of evaluations alone"));
  }
}

TEST(HostedTask, ParametersThatShareMemoryAreRefused) {
  const Settings settings = Settings::defaults(runtime_schema());
  const auto made = [&settings](v1::Task* (*make)(const v1::Host&)) {
    const v1::Descriptor descriptor{.name = "two", .declare = [] { return v1::Declaration{}; }, .make = make};
    return HostedTask::make(descriptor, settings, {}, host_device(), {});
  };
  const auto apart = made([](const v1::Host&) -> v1::Task* { return new TwoOfOne(2); });
  EXPECT_TRUE(apart) << apart.error().message;
  const auto shared = made([](const v1::Host&) -> v1::Task* { return new TwoOfOne(1); });
  ASSERT_FALSE(shared);
  EXPECT_THAT(shared.error().message,
              ::testing::HasSubstr("the parameters 'first' and 'second' share memory"));
}

/// With one state of that type.
class WithState final : public v1::Task {
 public:
  WithState(at::ScalarType type, v1::State::WrittenBy by) : state_(at::zeros({4}, type)), by_(by) {}
  std::vector<v1::Parameter> parameters() override { return {{"values", values_}}; }
  std::vector<v1::State> state() override { return {{"kept", state_, by_}}; }
  std::vector<v1::DataSet> data() override { return {{.name = "none", .training = 1}}; }
  v1::Batch load(const v1::Samples& /*samples*/) override { return {}; }
  at::Tensor loss(const v1::Batch& /*batch*/, v1::Sums& /*sums*/) override { return {}; }

 private:
  const at::Tensor values_ = at::ones({3}).requires_grad_(true);
  const at::Tensor state_;
  const v1::State::WrittenBy by_;
};

template <at::ScalarType type, v1::State::WrittenBy by>
std::string refusal_of_state() {
  const v1::Descriptor descriptor{
      .name = "kept",
      .declare = [] { return v1::Declaration{}; },
      .make = [](const v1::Host&) -> v1::Task* { return new WithState(type, by); }};
  const auto made = HostedTask::make(descriptor, Settings::defaults(runtime_schema()), {}, host_device(), {});
  return made ? "" : made.error().message;
}

TEST(HostedTask, WhateverItsConstructorThrowsIsARefusal) {
  const v1::Descriptor descriptor{.name = "thrower",
                                  .declare = [] { return v1::Declaration{}; },
                                  .make = [](const v1::Host&) -> v1::Task* { throw "no data"; }};
  const auto made = HostedTask::make(descriptor, Settings::defaults(runtime_schema()), {}, host_device(), {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::usage);
  EXPECT_THAT(made.error().message, ::testing::HasSubstr("thrower can't be made: the task threw something"));
}

TEST(HostedTask, AStateThatLossDoesntWriteMayBeOfOtherTypes) {
  using By = v1::State::WrittenBy;
  EXPECT_EQ((refusal_of_state<at::kLong, By::update>()), "");
  EXPECT_EQ((refusal_of_state<at::kBool, By::nobody>()), "");
  EXPECT_EQ((refusal_of_state<at::kDouble, By::update>()), "");
  EXPECT_THAT(
      (refusal_of_state<at::kLong, By::forward>()),
      ::testing::HasSubstr("the state that loss() writes, 'kept' has the type Long; it has to be float32"));
  EXPECT_THAT((refusal_of_state<at::kHalf, By::update>()),
              ::testing::HasSubstr("it has to be float32, float64, int64, uint8 or bool"));
}

/// Of one parameter and these groups.
class Grouped final : public v1::Task {
 public:
  explicit Grouped(std::vector<v1::Group> groups) : groups_(std::move(groups)) {}
  std::vector<v1::Parameter> parameters() override { return {{"weight", weight_, "heads"}}; }
  std::vector<v1::Group> groups() override { return groups_; }
  std::vector<v1::DataSet> data() override { return {{.name = "none", .training = 1}}; }
  v1::Batch load(const v1::Samples& /*samples*/) override { return {}; }
  at::Tensor loss(const v1::Batch& /*batch*/, v1::Sums& /*sums*/) override { return {}; }

 private:
  const std::vector<v1::Group> groups_;
  const at::Tensor weight_ = at::ones({4}).requires_grad_(true);
};

TEST(HostedTask, GroupsThatCantBeAreRefusedAtOnce) {
  static std::vector<v1::Group> groups;
  const Settings settings = Settings::defaults(runtime_schema());
  const auto refusal = [&settings](std::vector<v1::Group> given) {
    groups = std::move(given);
    const v1::Descriptor descriptor{.name = "grouped",
                                    .declare = [] { return v1::Declaration{}; },
                                    .make = [](const v1::Host&) -> v1::Task* { return new Grouped(groups); }};
    const auto made = HostedTask::make(descriptor, settings, {}, host_device(), {});
    return made ? "" : made.error().message;
  };
  using ::testing::HasSubstr;
  EXPECT_EQ(refusal({{.name = "heads", .lr_factor = 0, .weight_decay = 0.1}}), "");
  EXPECT_THAT(refusal({}),
              HasSubstr("the parameter 'weight' is in the group 'heads', and groups() has none"));
  EXPECT_THAT(refusal({{.name = "head"}}), HasSubstr("groups() has head; did you mean head?"));
  EXPECT_THAT(refusal({{.name = "heads"}, {.name = "heads"}}), HasSubstr("groups() has 'heads' twice"));
  EXPECT_THAT(refusal({{.name = "heads", .lr_factor = -1}}),
              HasSubstr("learning rate factor -1; it has to be 0"));
  EXPECT_THAT(refusal({{.name = "heads", .weight_decay = std::nan("")}}), HasSubstr("weight decay nan"));
}

/// Its second layer has the weight and the count of its first one.
struct TiedLayers : torch::nn::Module {
  TiedLayers() {
    const at::Tensor weight = at::ones({2}).requires_grad_(true), count = at::empty({2});
    for (const char* layer : {"first", "second"}) {
      register_parameter(std::string(layer) + "_weight", weight);
      register_buffer(std::string(layer) + "_count", count);
    }
  }
};

/// Two BatchNorms, the second one as `options` say.
struct TwoNorms : torch::nn::Module {
  explicit TwoNorms(const torch::nn::BatchNormOptions& options) {
    register_module("first", std::make_shared<torch::nn::BatchNorm1dImpl>(2));
    register_module("second", std::make_shared<torch::nn::BatchNorm2dImpl>(options));
  }
};

TEST(Module, ABatchNormThatAveragesAllBatchesIsRefused) {
  EXPECT_EQ(v1::state_of(TwoNorms(torch::nn::BatchNormOptions(2))).size(), 4U);
  const auto none = torch::nn::BatchNormOptions(2).momentum(std::nullopt);
  EXPECT_EQ(v1::state_of(TwoNorms(torch::nn::BatchNormOptions(none).track_running_stats(false))).size(), 2U);
  EXPECT_THAT([&none] { v1::state_of(TwoNorms(none)); },
              ::testing::ThrowsMessage<std::invalid_argument>(
                  ::testing::HasSubstr("the BatchNorm 'second' has no momentum")));
}

TEST(Module, WhatTwoLayersShareIsListedOnceByItsFirstName) {
  const TiedLayers module;
  const auto parameters = v1::parameters_of(module);
  ASSERT_EQ(parameters.size(), 1U);
  EXPECT_EQ(parameters[0].name, "first_weight");
  const auto state = v1::state_of(module);
  ASSERT_EQ(state.size(), 1U);
  EXPECT_EQ(state[0].name, "first_count");
}

}  // namespace
}  // namespace footplate
