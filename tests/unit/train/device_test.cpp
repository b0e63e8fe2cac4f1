// Training on a device that isn't the host, and in bf16: what differs for the trainer, without a GPU.
#include "runtime/device/compute_device.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <map>

#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::Rank;
using ::testing::SizeIs;
using testing::small_settings;
using testing::train;

/// In host memory, and treated as what the host doesn't reach: state is copied, sums are fetched, the
/// learning rate is a tensor.
class Apart final : public ComputeDevice {
 public:
  at::Device where() const override { return at::kCPU; }
  bool is_host() const override { return false; }
  std::string description() const override { return "a device apart"; }
  void enter_thread() const override { ++entered; }
  at::Tensor bring(const at::Tensor& host) const override {
    if (++brought == fails_at) throw std::runtime_error("no memory");
    return host.clone();
  }
  at::Tensor host_floats(std::int64_t elements) const override { return at::zeros({elements}, at::kFloat); }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    ++copied;
    std::memcpy(to, from, bytes);
  }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    ++copied;
    std::memcpy(to, from, bytes);
  }
  std::optional<DeviceMemory> memory() const override {
    return DeviceMemory{3 << 20, 5 << 20, 8 << 20, 16 << 20};
  }
  void forget_peak() override { ++peaks; }
  void empty_cache() override { ++emptied; }
  std::string explain(const std::exception& error) const override {
    return std::string("explained: ") + error.what();
  }

  mutable std::atomic<int> entered{0}, brought{0};
  std::atomic<int> copied{0}, peaks{0}, emptied{0}, fails_at{-1};
};

/// The course of a run, as rank 0 has shown it.
struct Course {
  std::vector<double> losses;
  std::vector<Json> lines;
  std::vector<std::string> told;
  std::vector<std::uint64_t> hashes;
};

Course run(int world_size, const std::vector<std::string>& assignments, ComputeDevice* device = nullptr,
           const std::function<void(Rank&)>& before = {}) {
  Course shown;
  shown.hashes = train(
      world_size, small_settings(assignments), before,
      [&](Rank& rank) {
        if (rank.communicator.rank() != 0) return;
        shown.lines = rank.sink.lines;
        shown.told = rank.told;
      },
      device);
  for (const Json& line : shown.lines)
    if (line.contains("train/loss")) shown.losses.push_back(line.at("train/loss"));
  return shown;
}

void expect_near(const std::vector<double>& some, const std::vector<double>& others, double tolerance) {
  ASSERT_EQ(some.size(), others.size());
  for (std::size_t i = 0; i < some.size(); ++i) EXPECT_NEAR(some[i], others[i], tolerance) << "line " << i;
}

TEST(TrainerOnADevice, ComesToWhatTheHostComesTo) {
  Apart device;
  const Course there = run(2, {"eval.every=4"}, &device);
  const Course here = run(2, {"eval.every=4"});
  expect_near(there.losses, here.losses, 1e-5);  // the learning rate there is a float
  EXPECT_EQ(there.hashes[0], there.hashes[1]);
  EXPECT_EQ(device.entered, 2);
  EXPECT_GT(device.brought, 20);
  EXPECT_THAT(there.told, Contains(HasSubstr("computes in fp32 on a device apart")));
}

TEST(TrainerOnADevice, GoesOnFromACheckpointBitForBit) {
  Apart device;
  const auto whole = run(1, {}, &device).hashes;
  std::map<std::string, testing::MemorySaver::Copy> kept;
  train(
      1, small_settings(),
      [](Rank& rank) {
        rank.gate.call_at(5, {"ckpt.save", {{"tag", "x"}}});
      },
      [&](Rank& rank) { kept = rank.saver.checkpoints; }, &device);
  const int copies = device.copied;
  EXPECT_EQ(run(1, {}, &device,
                [&](Rank& rank) {
                  rank.saver.checkpoints = kept;
                  ASSERT_TRUE(rank.trainer.load("step-5x"));
                  EXPECT_GT(device.copied, copies);
                })
                .hashes,
            whole);
}

TEST(TrainerOnADevice, ARankTakesAnothersState) {
  Apart device;
  setenv("FOOTPLATE_FAULT", "flip_bit:rank=1:step=3", 1);
  const auto apart = run(2, {}, &device).hashes;
  EXPECT_NE(apart[0], apart[1]);
  const auto repaired = run(2, {}, &device, [](Rank& rank) {
                          rank.gate.call_at(6, {"guard.repair", {{"source", 0}}});
                        }).hashes;
  unsetenv("FOOTPLATE_FAULT");
  EXPECT_EQ(repaired[0], repaired[1]);
}

TEST(TrainerOnADevice, AFailureIsToldInTheDevicesWordsAndWritesNothing) {
  Apart device;
  device.fails_at = 6;  // the sixth batch, of step 5
  testing::run_ranks(1, [&](int, Communicator& communicator, Progress& progress) {
    const Settings settings = small_settings({"guard.check_every=1"});
    auto trainer = Trainer::create({settings, communicator, progress, 1, nullptr, nullptr, {}, &device});
    ASSERT_TRUE(trainer);
    testing::FreeGate gate(settings, **trainer);
    const auto ending = (*trainer)->run(gate);
    ASSERT_FALSE(ending);
    EXPECT_THAT(ending.error().message, HasSubstr("step 5 failed: rank 0: explained: no memory"));
    EXPECT_EQ((*trainer)->step(), 5);
    EXPECT_EQ((*trainer)->state().hash(), gate.hashes.at(5));
  });
}

TEST(TrainerOnADevice, MemoryIsInTheMetricsAndGivenBackAsOftenAsAsked) {
  Apart device;
  const Course shown = run(1, {"train.empty_cache_every=3", "log.every=5"}, &device);
  EXPECT_EQ(device.emptied, 3);
  EXPECT_EQ(device.peaks, 2);
  ASSERT_THAT(shown.lines, SizeIs(2));
  EXPECT_EQ(shown.lines[0].at("mem/allocated_mib"), 3);
  EXPECT_EQ(shown.lines[0].at("mem/peak_mib"), 5);
  EXPECT_EQ(shown.lines[0].at("mem/reserved_mib"), 8);
  EXPECT_THAT(run(1, {}).lines.front().contains("mem/allocated_mib"), false);
}

TEST(Precision, Bf16ComputesNearlyTheSameAndKeepsFloats) {
  const Course half = run(2, {"train.precision=bf16", "train.micro_batch=2"});
  const Course full = run(2, {"train.micro_batch=2"});
  expect_near(half.losses, full.losses, 0.05);
  EXPECT_NE(half.losses, full.losses);
  EXPECT_EQ(half.hashes[0], half.hashes[1]);
  EXPECT_EQ(half.hashes, run(2, {"train.precision=bf16", "train.micro_batch=2"}).hashes) << "bit by bit";
}

TEST(Precision, ChangesAtTheStepOfAnOrder) {
  const auto before = [](Rank& rank) { rank.gate.change_at(5, "train.precision", std::string("bf16")); };
  const Course changed = run(1, {}, nullptr, before);
  const Course full = run(1, {});
  for (std::size_t line = 0; line < full.losses.size(); ++line)
    EXPECT_EQ(changed.losses[line] == full.losses[line], line < 5) << line;
  EXPECT_THAT(changed.told, Contains(HasSubstr("computes in bf16")));
  EXPECT_THAT(changed.told, Contains(HasSubstr("computes in fp32")));
}

TEST(Precision, EvaluationsAreComputedInItToo) {
  const auto eval_loss = [](const char* precision, const char* async) {
    const Course shown = run(1, {"eval.every=5", precision, async, "sched.base_lr=0", "train.steps=9"});
    for (const Json& line : shown.lines)
      if (line.contains("eval/loss")) return line.at("eval/loss").get<double>();
    return 0.0;
  };
  const double full = eval_loss("train.precision=fp32", "eval.async=false");
  const double half = eval_loss("train.precision=bf16", "eval.async=false");
  EXPECT_NE(half, full);
  EXPECT_NEAR(half, full, 0.01);
  EXPECT_EQ(eval_loss("train.precision=bf16", "eval.async=true"), half);
}

TEST(Attention, RunsOnTheKernelThatIsAskedForAndSaysSo) {
  const Course any = run(1, {});
  const Course math = run(1, {"train.attention=math"});
  EXPECT_THAT(any.told, Contains(HasSubstr("attention: flash")));
  EXPECT_THAT(math.told, Contains(HasSubstr("attention: math")));
  expect_near(math.losses, any.losses, 1e-3);
  EXPECT_NE(math.losses, any.losses);
}

}  // namespace
}  // namespace footplate
