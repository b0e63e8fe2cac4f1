#include "runtime/tasks/hosted_task.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

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

}  // namespace
}  // namespace footplate
