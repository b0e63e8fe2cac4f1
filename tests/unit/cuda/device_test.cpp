// A real device, with the NCCL that LibTorch is linked with. One is enough: one-rank communicators run no
// collective, but are made, aborted and made again as all others. Skipped where there is none.
#include "runtime/cuda/device.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <span>
#include <vector>

#include "runtime/comm/launch_queue.h"
#include "runtime/comm/sim/sim_world.h"
#include "runtime/cuda/nccl_communicator.h"
#include "runtime/device/stretch_sums.h"
#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// The last one is like the first: another number of CTAs needs other memory, 14 MiB each on an H100.
constexpr int kRebuilds = 49;
constexpr int kConfigs = 4;
static_assert((kRebuilds - 1) % kConfigs == 0);

/// Once per process: LibTorch's CUDA kernels stay loaded.
CudaDevice* device() {
  static const auto opened = open_cuda({.index = 0, .deterministic = true});
  if (!opened) ADD_FAILURE() << opened.error().message;
  return opened ? opened->get() : nullptr;
}

std::string said(const Result<void>& result) {
  return result ? "fine" : result.error().message;
}

/// A communicator of one rank on the device, and what it needs.
struct OneRank {
  OneRank()
      : library(*NcclLibrary::open("libnccl.so.2")),
        host(world.communicator(0, host_ledger, progress)),
        queue(ledger, progress),
        communicator({.library = library,
                      .stream = device()->nccl_stream(),
                      .host = *host,
                      .queue = queue,
                      .bounds = {60s, 60s, 60s},
                      .enter_thread = [] { device()->enter_thread(); },
                      .find_together = [] {}},
                     {}) {}

  SimWorld world{1};
  Progress progress;
  Ledger host_ledger, ledger;
  const NcclLibrary library;
  std::unique_ptr<Communicator> host;
  LaunchQueue queue;
  NcclCommunicator communicator;
};

class OnADevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (visible_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device here (libcuda.so.1 shows none)";
    ASSERT_NE(device(), nullptr);
    device()->enter_thread();
  }

  static at::Tensor ones(std::int64_t elements) {
    return at::ones({elements}, at::TensorOptions(at::kFloat).device(device()->where()));
  }
  static Result<void> sum(Communicator& communicator, const at::Tensor& numbers) {
    return communicator.all_reduce({numbers.mutable_data_ptr(), numbers.numel()}, ReduceOp::sum, "gradients")
        ->wait();
  }
  /// Memory of the device that is in use by anybody, NCCL too, in bytes.
  static std::int64_t used() {
    std::size_t free = 0, total = 0;
    const auto ask = reinterpret_cast<int (*)(std::size_t*, std::size_t*)>(
        ::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), "cuMemGetInfo_v2"));
    EXPECT_EQ(ask(&free, &total), 0);
    return static_cast<std::int64_t>(total - free);
  }
};

TEST_F(OnADevice, SumsUpItsMemoryAsTheHostWould) {
  constexpr std::int64_t kElements = 3 << 18;
  const at::Tensor host = at::rand({kElements});
  const at::Tensor there = host.to(device()->where());
  const auto stretches_of = [](const at::Tensor& tensor) {
    const auto bytes = std::as_bytes(std::span(tensor.const_data_ptr<float>(), tensor.numel()));
    return std::vector{bytes.first(1 << 20), bytes.subspan(1 << 20)};
  };
  const auto pending = device()->begin_hashes(stretches_of(there));
  const at::Tensor wanted = StretchSums(at::kCPU).of(stretches_of(host));
  const auto* first = wanted.const_data_ptr<std::int64_t>();
  EXPECT_EQ(pending->take(), (std::vector<std::uint64_t>{first, first + wanted.numel()}));
}

TEST_F(OnADevice, MemoryIsCopiedInAndOut) {
  std::vector<float> numbers(12'345'678), back(numbers.size());  // several pieces, the last one short
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  const at::Tensor there = ones(static_cast<std::int64_t>(numbers.size()));
  const std::size_t bytes = numbers.size() * sizeof(float);
  device()->copy_in(there.mutable_data_ptr(), numbers.data(), bytes);
  device()->copy_out(back.data(), there.const_data_ptr(), bytes);
  EXPECT_EQ(back, numbers);
  EXPECT_GE(device()->memory()->allocated, static_cast<std::int64_t>(bytes));
}

TEST_F(OnADevice, CommunicatorsAreMadeAgainAndAgainWithoutMemoryGrowing) {
  OneRank rank;
  ASSERT_EQ(said(rank.communicator.connect()), "fine");
  const at::Tensor numbers = ones(1'000'000);
  EXPECT_EQ(said(sum(rank.communicator, numbers)), "fine");
  std::int64_t after_first = 0;
  for (int i = 0; i < kRebuilds; ++i) {
    CommunicatorConfig config;
    config.max_ctas = 4 + i % kConfigs;
    const auto renewed = rank.communicator.renew(config);
    ASSERT_TRUE(renewed) << renewed.error().message;
    EXPECT_EQ(said(sum(rank.communicator, numbers)), "fine");
    if (i == 0) after_first = used();
  }
  EXPECT_LE(static_cast<double>(used()), 1.01 * static_cast<double>(after_first));
  EXPECT_EQ(numbers.sum().item<float>(), 1e6F);
  EXPECT_TRUE(rank.communicator.finish());
}

TEST_F(OnADevice, AReductionWaitsForWhatIsComputedAndAnAbortBehindItIsBounded) {
  constexpr std::int64_t kWidth = 8192;
  OneRank rank;
  ASSERT_EQ(said(rank.communicator.connect()), "fine");
  const auto options = at::TensorOptions(at::kFloat).device(device()->where());
  at::Tensor a = at::ones({kWidth, kWidth}, options).mul_(1.0 / kWidth), b = a.clone();
  for (int i = 0; i < 100; ++i) b = at::mm(a, b);  // a second or so
  const at::Tensor row = b.select(0, 0);
  EXPECT_EQ(said(sum(rank.communicator, row)), "fine");
  EXPECT_NEAR(row.sum().item<double>(), 1.0, 1e-3);
  for (int i = 0; i < 100; ++i) b = at::mm(a, b);
  const auto work = rank.communicator.all_reduce({b.mutable_data_ptr(), kWidth}, ReduceOp::sum, "gradients");
  rank.queue.close({ErrorKind::lost, "a rank was lost"});
  EXPECT_FALSE(work->wait(SteadyClock::now() + 60s));
}

/// Training through NCCL on the device.
struct Trained {
  std::vector<double> losses;
  std::vector<std::string> told;
  std::uint64_t hash = 0;
  std::int64_t memory_early = 0, memory_late = 0;
};

Trained train_there(const std::vector<std::string>& assignments) {
  OneRank rank;
  EXPECT_EQ(said(rank.communicator.connect()), "fine");
  const Settings settings = testing::small_settings(assignments);
  testing::MemorySink sink;
  testing::MemorySaver saver;
  Trained trained;
  auto trainer = Trainer::create({settings, *rank.host, rank.progress, 1, &saver, &sink,
                                  [&](const std::string& text) { trained.told.push_back(text); }, device(),
                                  &rank.communicator});
  EXPECT_TRUE(trainer) << trainer.error().message;
  testing::FreeGate gate(settings, **trainer);
  const auto ending = (*trainer)->run(gate);
  EXPECT_TRUE(ending) << ending.error().message;
  for (const Json& line : sink.lines) {
    trained.losses.push_back(line.at("train/loss"));
    trained.memory_late = line.at("mem/reserved_mib");
    if (trained.memory_early == 0) trained.memory_early = trained.memory_late;
  }
  trained.hash = (*trainer)->state().hash();
  EXPECT_TRUE(rank.communicator.finish());
  return trained;
}

TEST_F(OnADevice, TrainsToTheLossesOfTheProcessors) {
  const Trained there = train_there({"train.steps=40"});
  std::vector<double> here;
  testing::train(1, testing::small_settings({"train.steps=40"}), {}, [&](testing::Rank& rank) {
    for (const Json& line : rank.sink.lines) here.push_back(line.at("train/loss"));
  });
  ASSERT_EQ(there.losses.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there.losses[i], here[i], 2e-3 * here[i]) << i;
}

TEST_F(OnADevice, Bf16IsReproducedBitForBitWithoutMemoryGrowing) {
  const Trained once = train_there({"train.steps=200", "train.precision=bf16", "log.every=20"});
  const Trained again = train_there({"train.steps=200", "train.precision=bf16", "log.every=20"});
  EXPECT_EQ(once.hash, again.hash);
  EXPECT_LT(once.losses.back(), once.losses.front() - 0.5);
  EXPECT_LE(static_cast<double>(once.memory_late), 1.01 * static_cast<double>(once.memory_early));
  EXPECT_THAT(once.told, Contains(HasSubstr("computes in bf16 on cuda:0 (")));
}

TEST_F(OnADevice, ARecordedStepComesToTheSameBitForBit) {
  for (const char* precision : {"train.precision=fp32", "train.precision=bf16"}) {
    const std::vector<std::string> steps{"train.steps=60", "train.micro_batch=4", "log.every=10", precision};
    auto recorded = steps;
    recorded.emplace_back("train.cuda_graph=true");
    const Trained direct = train_there(steps), replayed = train_there(recorded);
    EXPECT_EQ(replayed.losses, direct.losses) << precision;
    EXPECT_EQ(replayed.hash, direct.hash) << precision;
    EXPECT_THAT(replayed.told, Contains(HasSubstr("steps are recorded")));
    EXPECT_THAT(replayed.told, Not(Contains(HasSubstr("can't record")))) << precision;
  }
}

TEST_F(OnADevice, WhatCantBeRecordedIsAnErrorAndTheDeviceGoesOn) {
  ASSERT_TRUE(device()->can_record());
  const at::Tensor numbers = ones(1000);
  for (int i = 0; i < 3; ++i)
    EXPECT_THROW(static_cast<void>(device()->record([&] { static_cast<void>(numbers.sum().item<float>()); })),
                 std::exception);
  EXPECT_EQ(numbers.add(1).sum().item<float>(), 2000.0F);
  const auto recording = device()->record([&] { numbers.add_(1); });
  EXPECT_EQ(numbers.sum().item<float>(), 1000.0F) << "nothing is done yet";
  recording->start();
  recording->start();
  EXPECT_EQ(numbers.sum().item<float>(), 3000.0F);
}

TEST_F(OnADevice, OutOfMemoryIsAnErrorThatHelps) {
  const std::int64_t elements = device()->memory()->total / 2;
  try {
    const at::Tensor too_large = ones(elements);
    FAIL() << "a tensor of twice the device's memory";
  } catch (const std::exception& error) {
    const std::string text = device()->explain(error);
    EXPECT_THAT(text, HasSubstr("out of memory on cuda:0"));
    EXPECT_THAT(text, HasSubstr("train.micro_batch"));
  }
  EXPECT_EQ(ones(10).sum().item<float>(), 10.0F) << "the device goes on";
}

}  // namespace
}  // namespace footplate
