// data.cache: each sample is loaded once, and a batch is the same with it and without.
#include "runtime/tasks/sample_cache.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/schema/schema_table.h"
#include "runtime/tasks/hosted_task.h"

namespace footplate {
namespace {

using testing::HasSubstr;

/// Memory of the host that is treated as what the host doesn't reach.
class Elsewhere final : public ComputeDevice {
 public:
  at::Device where() const override { return at::kCPU; }
  bool is_host() const override { return false; }
  std::string description() const override { return "a device elsewhere"; }
  at::Tensor bring(const at::Tensor& host, bool /*pinned*/) const override {
    brought += host.numel();
    return host.clone();
  }
  at::Tensor host_floats(std::int64_t elements) const override { return at::zeros({elements}, at::kFloat); }
  void copy_out(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy_in(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }

  mutable std::int64_t brought = 0;  ///< elements
};

constexpr std::int64_t kSamples = 10;

/// A sample is a row of `width` times its number, and counts 2.5.
class Rows final : public v1::Task {
 public:
  explicit Rows(std::int64_t width) : width_(width) {}

  std::vector<v1::Parameter> parameters() override { return {{"values", values_}}; }
  std::vector<v1::DataSet> data() override { return {{.name = "rows", .training = kSamples, .held_out = 4}}; }
  v1::Batch load(const v1::Samples& samples) override {
    loaded += samples.indexes.size();
    const std::vector<std::int64_t> indexes(samples.indexes.begin(), samples.indexes.end());
    const at::Tensor numbers = at::tensor(indexes).add(samples.held_out ? 100 : 0);
    const at::Tensor rows = numbers.to(at::kFloat).unsqueeze(1).repeat({1, wider ? width_ + 1 : width_});
    return {.tensors = {numbers, sums ? rows.sum(0) : rows},
            .weight = 2.5 * static_cast<double>(indexes.size())};
  }
  std::vector<at::Tensor> by_draw(const v1::Samples& samples) override {
    return {at::tensor(std::vector(samples.draws.begin(), samples.draws.end()))};
  }
  at::Tensor loss(const v1::Batch& /*batch*/, v1::Sums& /*sums*/) override { return values_.sum(); }

  std::size_t loaded = 0;
  bool wider = false, sums = false;

 private:
  const std::int64_t width_;
  const at::Tensor values_ = at::zeros({1}).requires_grad_(true);
};

Settings settings_with(const char* place, std::int64_t mib = 4096) {
  const Schema schema = runtime_schema();
  Settings settings = Settings::defaults(schema);
  settings.set("data.cache", std::string(place), "test");
  settings.set("data.cache_mib", mib, "test");
  return settings;
}

struct Hosted {
  explicit Hosted(const char* place, const ComputeDevice& device = host_device(), std::int64_t width = 3,
                  std::int64_t mib = 4096) {
    auto made = std::make_unique<Rows>(width);
    rows = made.get();
    task =
        std::make_unique<HostedTask>(std::move(made), v1::Declaration{.cacheable = true}, /*seed=*/1, device);
    task->changed(settings_with(place, mib), 0);
  }
  Rows* rows = nullptr;
  std::unique_ptr<HostedTask> task;
};

void expect_equal(const v1::Batch& some, const v1::Batch& other) {
  EXPECT_EQ(some.weight, other.weight);
  EXPECT_EQ(some.held_out, other.held_out);
  ASSERT_EQ(some.tensors.size(), other.tensors.size());
  for (std::size_t i = 0; i < some.tensors.size(); ++i)
    EXPECT_TRUE(at::equal(some.tensors[i], other.tensors[i])) << "tensor " << i;
}

TEST(SampleCache, EachSampleIsLoadedOnceAndBatchesAreTheSame) {
  const Elsewhere device;
  Hosted none("none"), host("host"), apart("device", device);
  for (std::int64_t draw = 0; draw < 3 * kSamples; draw += 3) {
    const Draws draws{0, {draw, draw + 3}};
    const v1::Batch expected = none.task->load(draws);
    expect_equal(host.task->load(draws), expected);
    expect_equal(apart.task->load(draws), expected);
  }
  const std::vector<std::int64_t> held_out{0, 2, 3};
  for (int time = 0; time < 2; ++time)
    for (Hosted* one : {&host, &apart})
      expect_equal(one->task->load_held_out(0, held_out), none.task->load_held_out(0, held_out));
  EXPECT_EQ(none.rows->loaded, 3 * kSamples + 4 * held_out.size());
  EXPECT_EQ(host.rows->loaded, kSamples + held_out.size());
  EXPECT_EQ(apart.rows->loaded, kSamples + held_out.size());
  EXPECT_LT(device.brought, 3 * (kSamples + 3) * 4 + 200) << "rows go to the device once";
}

TEST(SampleCache, WhatWasLoadedTwiceAheadIsKeptOnce) {
  const Elsewhere device;
  Hosted none("none"), apart("device", device);
  const Draws first{0, {0, 6}}, second{0, {8, 14}};  // they have samples in common
  LoadedSamples ahead = apart.task->load_on_host(second);
  expect_equal(apart.task->load(first), none.task->load(first));
  expect_equal(apart.task->on_device(second, std::move(ahead)), none.task->load(second));
  const std::size_t before = apart.rows->loaded;
  expect_equal(apart.task->load(second), none.task->load(second));
  EXPECT_EQ(apart.rows->loaded, before);
}

TEST(SampleCache, SamplesWithoutRoomAreLoadedAsAlways) {
  constexpr std::int64_t kQuarterMebibyte = (1 << 16) - 2;  // floats, beside a number of 8 bytes
  const Elsewhere device;
  Hosted none("none", host_device(), kQuarterMebibyte), host("host", host_device(), kQuarterMebibyte, 1),
      apart("device", device, kQuarterMebibyte, 1);
  for (std::int64_t draw = 0; draw < 2 * kSamples; draw += 5) {
    const Draws draws{0, {draw, draw + 5}};
    const v1::Batch expected = none.task->load(draws);
    expect_equal(host.task->load(draws), expected);
    expect_equal(apart.task->load(draws), expected);
  }
  EXPECT_EQ(host.rows->loaded, 2 * kSamples - 4) << "four are kept";
  EXPECT_EQ(apart.rows->loaded, 2 * kSamples - 4);
}

TEST(SampleCache, AnotherSettingBeginsAnew) {
  Hosted host("host");
  static_cast<void>(host.task->load({0, {0, kSamples}}));
  host.task->changed(settings_with("host"), 1);
  static_cast<void>(host.task->load({0, {0, kSamples}}));
  EXPECT_EQ(host.rows->loaded, kSamples);
  host.task->changed(settings_with("host", 4095), 2);
  static_cast<void>(host.task->load({0, {0, kSamples}}));
  EXPECT_EQ(host.rows->loaded, 2 * kSamples);
  host.task->changed(settings_with("none"), 3);
  static_cast<void>(host.task->load({0, {0, kSamples}}));
  EXPECT_EQ(host.rows->loaded, 3 * kSamples);
}

TEST(SampleCache, ATaskThatGivesNoRowsIsToldSo) {
  const auto why = [](Hosted& hosted, const Draws& draws) {
    try {
      static_cast<void>(hosted.task->load(draws));
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Hosted sums("host");
  sums.rows->sums = true;
  EXPECT_THAT(why(sums, {0, {0, 2}}), HasSubstr("gave a tensor of 3 rows for 2 samples; a task that is"));
  EXPECT_THAT(why(sums, {0, {0, 2}}), HasSubstr("gave a tensor of 3 rows")) << "nothing is kept of the first";
  sums.rows->sums = false;
  EXPECT_EQ(why(sums, {0, {0, 2}}), "");
  Hosted wider("host");
  EXPECT_EQ(why(wider, {0, {0, 2}}), "");
  wider.rows->wider = true;
  EXPECT_THAT(why(wider, {0, {2, 4}}), HasSubstr("gave tensors of other shapes"));
}

}  // namespace
}  // namespace footplate
