// Training on a device that isn't the host, and in bf16: what differs for the trainer, without a GPU.
#include "runtime/device/compute_device.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <tuple>

#include "runtime/device/host_kernels/instructions.h"
#include "runtime/device/peak_flops.h"
#include "runtime/device/stretch_sums.h"
#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Rank;
using ::testing::SizeIs;
using testing::small_settings;
using testing::train;

/// In host memory, and treated as what the host doesn't reach: state is copied, sums are fetched, the
/// learning rate is a tensor.
class Apart : public ComputeDevice {
 public:
  at::Device where() const override { return at::kCPU; }
  bool is_host() const override { return false; }
  std::string description() const override { return "a device apart"; }
  void enter_thread() const override { ++entered; }
  at::Tensor bring(const at::Tensor& host, bool pinned) const override {
    if (pinned) ++brought_pinned;
    if (const int now = ++brought; now >= fails_at && now < fails_at + failures)
      throw std::runtime_error("no memory");
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
  std::size_t most_hashed() const override { return StretchSums::kMostBytes; }
  std::unique_ptr<PendingHashes> begin_hashes(
      std::span<const std::span<const std::byte>> stretches) override {
    struct Known final : PendingHashes {
      std::vector<std::uint64_t> take() override {
        const auto* first = sums.const_data_ptr<std::int64_t>();
        return {first, first + sums.numel()};
      }
      at::Tensor sums;
    };
    auto known = std::make_unique<Known>();
    known->sums = StretchSums(where()).of(stretches);
    return known;
  }
  bool can_record() const override { return records; }
  /// The work is kept and done at each start, the first one included.
  std::unique_ptr<Recording> record(const std::function<void()>& body) override {
    if (recorded >= most_recordings) throw std::runtime_error("not this");
    ++recorded;
    struct Kept final : Recording {
      Kept(std::function<void()> the_body, std::atomic<int>& the_starts)
          : body(std::move(the_body)), starts(the_starts) {}
      void start() override {
        ++starts;
        body();
      }
      const std::function<void()> body;
      std::atomic<int>& starts;
    };
    return std::make_unique<Kept>(body, started);
  }
  std::optional<DeviceMemory> memory() const override {
    return DeviceMemory{3 << 20, 5 << 20, 8 << 20, 16 << 20};
  }
  void forget_peak() override { ++peaks; }
  void empty_cache() override { ++emptied; }
  std::string explain(const std::exception& error) const override {
    return std::string("explained: ") + error.what();
  }

  mutable std::atomic<int> entered{0}, brought{0}, brought_pinned{0};
  std::atomic<int> copied{0}, peaks{0}, emptied{0}, fails_at{-1};
  int failures = 2;
  std::atomic<int> recorded{0}, started{0};
  bool records = false;
  int most_recordings = 1000;
};

/// A device that records, and what it came to.
struct Records : Apart {
  Records() { records = true; }
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

TEST(TrainerOnADevice, AFlippedBitIsFoundByTheDevicesOwnSums) {
  Apart device;
  setenv("FOOTPLATE_FAULT", "flip_bit:rank=1:step=3", 1);
  std::vector<std::int64_t> told;
  run(2, {"guard.check_every=2"}, &device, [&](Rank& rank) {
    if (rank.communicator.rank() == 0)
      rank.gate.on_report = [&](const StateHash& state) { told.push_back(state.step); };
  });
  unsetenv("FOOTPLATE_FAULT");
  EXPECT_THAT(told, ::testing::ElementsAre(4, 6, 8));
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
  device.fails_at = 6;  // the sixth batch, of step 5: ahead of the step, and in it
  testing::run_ranks(1, [&](int, Communicator& communicator, Progress& progress) {
    const Settings settings = small_settings();
    TrainerOptions options{settings, communicator, progress, 1, nullptr, nullptr, {}, &device};
    const StateTable* state = nullptr;
    std::uint64_t before = 0;  // the last step that began
    options.before_step = [&](std::int64_t) -> Result<void> {
      before = state->hash();
      return {};
    };
    auto trainer = Trainer::create(std::move(options));
    ASSERT_TRUE(trainer);
    state = &(*trainer)->state();
    testing::FreeGate gate(settings, **trainer);
    const auto ending = (*trainer)->run(gate);
    ASSERT_FALSE(ending);
    EXPECT_THAT(ending.error().message, HasSubstr("step 5 failed: rank 0: explained: no memory"));
    EXPECT_EQ((*trainer)->step(), 5);
    EXPECT_EQ((*trainer)->state().hash(), before);
  });
}

TEST(TrainerOnADevice, LoadsAheadWhatTheNextStepBeginsWith) {
  Apart device;
  const std::vector<std::string> settings{"train.steps=10", "train.micro_batch=3", "data.workers=0"};
  static_cast<void>(run(1, settings, &device));  // 3, 3 and 1 of seven samples
  EXPECT_EQ(device.brought, 10 * 3 + 1) << "each once, and one for a step that never comes";
  device.brought = 0;
  device.fails_at = 4;  // ahead of step 1 alone: in it there is memory again
  device.failures = 1;
  EXPECT_EQ(run(1, settings, &device).losses.size(), 10U);
}

TEST(TrainerOnADevice, BringsWhatThreadsHaveLoaded) {
  Apart device;
  const auto losses = [&](const char* workers) {
    return run(1, {"train.steps=10", "train.micro_batch=3", workers}, &device).losses;
  };
  EXPECT_EQ(losses("data.workers=2"), losses("data.workers=0"));
}

TEST(TrainerOnADevice, BringsByWayOfPinnedMemoryAsLongAsAsked) {
  Apart device;
  const std::vector<std::string> settings{"train.steps=10", "data.workers=0"};
  static_cast<void>(run(1, settings, &device));
  EXPECT_EQ(device.brought_pinned, device.brought);
  device.brought = device.brought_pinned = 0;
  const Course shown =
      run(1, settings, &device, [](Rank& rank) { rank.gate.change_at(6, "data.pin_memory", false); });
  EXPECT_EQ(device.brought_pinned, 7) << "those of six steps, and one ahead";
  EXPECT_EQ(device.brought, 11 + 1) << "one was forgotten with the order";
  const auto told = [](const std::vector<std::string>& assignments) { return run(1, assignments).told; };
  const auto is_told = Contains(HasSubstr("data.pin_memory changes nothing on the processors"));
  EXPECT_THAT(told({"data.pin_memory=false"}), is_told);
  EXPECT_THAT(told({}), ::testing::Not(is_told));
}

TEST(TrainerOnADevice, AnOrderChangesWhatTheNextStepBeginsWith) {
  Apart device;
  const auto smaller = [](Rank& rank) { rank.gate.change_at(5, "train.micro_batch", std::int64_t{2}); };
  const Course ahead = run(2, {}, &device, smaller), here = run(2, {}, nullptr, smaller);
  expect_near(ahead.losses, here.losses, 1e-5);
}

TEST(TrainerOnADevice, MemoryIsInTheMetricsAndGivenBackAsOftenAsAsked) {
  Apart device;
  const Course shown =
      run(1, {"train.empty_cache_every=3", "log.every=5", "log.perf_every=5", "log.detail_every=5"}, &device);
  EXPECT_EQ(device.emptied, 3);
  EXPECT_EQ(device.peaks, 2);
  ASSERT_THAT(shown.lines, SizeIs(2));
  EXPECT_EQ(shown.lines[0].at("mem/allocated_mib"), 3);
  EXPECT_EQ(shown.lines[0].at("mem/peak_mib"), 5);
  EXPECT_EQ(shown.lines[0].at("mem/reserved_mib"), 8);
  EXPECT_THAT(run(1, {}).lines.front().contains("mem/allocated_mib"), false);
}

TEST(Mfu, IsOfWhatTheDevicesNamePromises) {
  for (const auto& [name, bf16, fp32] :
       std::vector<std::tuple<const char*, double, double>>{{"NVIDIA H200", 989, 67},
                                                            {"NVIDIA H100 80GB HBM3", 989, 67},
                                                            {"NVIDIA H100 PCIe", 756, 51},
                                                            {"NVIDIA A100-SXM4-80GB", 312, 19.5},
                                                            {"NVIDIA A10", 125, 31.2},
                                                            {"NVIDIA L40S", 362, 91.6},
                                                            {"NVIDIA L4", 121, 30.3}}) {
    EXPECT_EQ(peak_tflops(name, Precision::bf16), bf16) << name;
    EXPECT_EQ(peak_tflops(name, Precision::fp32), fp32) << name;
  }
  EXPECT_EQ(peak_tflops("Tesla K80", Precision::bf16), std::nullopt);
  EXPECT_EQ(peak_tflops("NVIDIA RTX A1000", Precision::bf16), std::nullopt) << "no A100";
  EXPECT_EQ(peak_tflops("NVIDIA A100-SXM4-80GB", Precision::bf16), 312);
  EXPECT_EQ(peak_tflops("NVIDIA GH200 480GB", Precision::bf16), 989);
  struct H200 : Apart {
    std::optional<double> peak_tflops(Precision precision) const override {
      return footplate::peak_tflops("NVIDIA H200", precision);
    }
  } device;
  for (const auto& [precision, peak] :
       {std::pair("train.precision=fp32", 67.0), std::pair("train.precision=bf16", 989.0)}) {
    const Json line = run(2, {precision}, &device).lines.back();
    EXPECT_NEAR(line.at("perf/mfu").get<double>() * 2 * peak, line.at("perf/tflops").get<double>(), 1e-9)
        << precision;
  }
}

TEST(CudaGraph, ComesToTheSameBitForBit) {
  Apart device;
  Records graph;
  const std::vector<std::string> steps{"train.steps=12", "train.micro_batch=3", "train.batch_size=16"};
  auto recorded = steps;
  recorded.emplace_back("train.cuda_graph=true");
  const Course direct = run(2, steps, &device), replayed = run(2, recorded, &graph);
  EXPECT_EQ(replayed.hashes, direct.hashes);
  EXPECT_EQ(replayed.losses, direct.losses);
  // Of each rank: micro-batches of three samples and of two, and the update.
  EXPECT_EQ(graph.recorded, 2 * 3);
  // Eight samples a step are 3, 3 and 2; the first three of each part are done directly.
  EXPECT_EQ(graph.started, 2 * (12 * 4 - 3 * 3));
  EXPECT_THAT(replayed.told, Contains(HasSubstr("; steps are recorded (train.cuda_graph)")));
}

TEST(CudaGraph, IsRecordedAgainWhereAnOrderMakesItNecessary) {
  Records graph;
  const auto course = [&](const char* name, const Value& value) {
    graph.recorded = 0;
    return run(1, {"train.steps=20", "train.cuda_graph=true"}, &graph,
               [&](Rank& rank) { rank.gate.change_at(10, name, value); });
  };
  static_cast<void>(course("log.every", std::int64_t{2}));
  EXPECT_EQ(graph.recorded, 2);
  static_cast<void>(course("optim.lr_scale", 0.5));
  EXPECT_EQ(graph.recorded, 2) << "a place on the device";
  for (const auto& [name, value] :
       std::map<std::string, Value>{{"train.clip_norm", 0.5},
                                    {"optim.weight_decay", 0.2},
                                    {"optim.eps", 1e-6},
                                    {"optim.betas", std::vector<double>{0.8, 0.9}},
                                    {"task.dropout", 0.1},
                                    {"train.precision", std::string("bf16")},
                                    {"train.attention", std::string("math")}}) {
    const Course changed = course(name.c_str(), value);
    EXPECT_EQ(graph.recorded, 4) << name;
    Apart device;
    const Course direct = run(1, {"train.steps=20"}, &device, [&, &name = name, &value = value](Rank& rank) {
      rank.gate.change_at(10, name, value);
    });
    EXPECT_EQ(changed.hashes, direct.hashes) << name;
  }
  static_cast<void>(course("train.cuda_graph", false));
  EXPECT_EQ(graph.recorded, 2);
}

TEST(CudaGraph, WhereAStepCantBeRecordedItGoesOnWithout) {
  Records graph;
  graph.most_recordings = 1;  // the forward and backward pass; not the update
  Apart device;
  const Course refused = run(1, {"train.cuda_graph=true"}, &graph), direct = run(1, {}, &device);
  EXPECT_EQ(refused.hashes, direct.hashes);
  EXPECT_THAT(refused.told,
              Contains(HasSubstr("step 4: rank 0 can't record its steps (train.cuda_graph), and "
                                 "goes on without: explained: not this")));
}

TEST(CudaGraph, SaysWhereItWouldChangeNothing) {
  EXPECT_THAT(
      run(1, {"train.cuda_graph=true"}).told,
      Contains(HasSubstr("train.cuda_graph changes nothing: the processors (cpu) can't record a step")));
  Records graph;
  testing::run_ranks(1, [&](int, Communicator& communicator, Progress& progress) {
    const Settings settings = small_settings({"run.task=synthetic"});
    Order order;
    order.changes.push_back({"train.cuda_graph", true, {}});
    Settings after = settings;
    after.set("train.cuda_graph", true, "test");
    for (ComputeDevice* on : {static_cast<ComputeDevice*>(nullptr), static_cast<ComputeDevice*>(&graph)}) {
      auto trainer = Trainer::create({settings, communicator, progress, 1, nullptr, nullptr, {}, on});
      ASSERT_TRUE(trainer);
      const auto prepared = (*trainer)->prepare(order, after);
      ASSERT_FALSE(prepared);
      EXPECT_THAT(
          prepared.error().message,
          HasSubstr(on == nullptr ? "train.cuda_graph would change nothing: the processors (cpu) can't"
                                  : "run.task = \"synthetic\" reads its data while it computes"));
    }
  });
}

TEST(Precision, Bf16ComputesNearlyTheSameAndKeepsFloats) {
  if (!multiplies_bf16()) GTEST_SKIP() << "this processor has no instructions that multiply bf16";
  const Course half = run(2, {"train.precision=bf16", "train.micro_batch=2"});
  const Course full = run(2, {"train.micro_batch=2"});
  expect_near(half.losses, full.losses, 0.05);
  EXPECT_NE(half.losses, full.losses);
  EXPECT_EQ(half.hashes[0], half.hashes[1]);
  EXPECT_EQ(half.hashes, run(2, {"train.precision=bf16", "train.micro_batch=2"}).hashes) << "bit by bit";
}

TEST(Precision, ChangesAtTheStepOfAnOrder) {
  if (!multiplies_bf16()) GTEST_SKIP() << "this processor has no instructions that multiply bf16";
  const auto before = [](Rank& rank) { rank.gate.change_at(5, "train.precision", std::string("bf16")); };
  const Course changed = run(1, {}, nullptr, before);
  const Course full = run(1, {});
  for (std::size_t line = 0; line < full.losses.size(); ++line)
    EXPECT_EQ(changed.losses[line] == full.losses[line], line < 5) << line;
  EXPECT_THAT(changed.told, Contains(HasSubstr("computes in bf16")));
  EXPECT_THAT(changed.told, Contains(HasSubstr("computes in fp32")));
}

TEST(Precision, EvaluationsAreComputedInItToo) {
  if (!multiplies_bf16()) GTEST_SKIP() << "this processor has no instructions that multiply bf16";
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

TEST(Precision, ParametersInBf16TrainAlmostAsIfTheyWerentAndStayInIt) {
  const std::vector<std::string> in_bf16{"train.precision=bf16", "train.param_dtype=bf16"};
  const Course kept = run(2, in_bf16);
  expect_near(kept.losses, run(2, {}).losses, 0.05);
  EXPECT_EQ(kept.hashes[0], kept.hashes[1]);
  EXPECT_EQ(kept.hashes, run(2, in_bf16).hashes) << "bit by bit";
  EXPECT_THAT(kept.told, Contains(HasSubstr("matrices are kept in bf16, with fp32 master weights")));
  train(1, small_settings(in_bf16), nullptr, [](Rank& rank) {
    const StateTable& state = rank.trainer.state();
    EXPECT_EQ(state.find("model/blocks.0.qkv.weight")->type, DataType::bfloat16);
    for (const char* kept_wide : {"model/embedding.weight", "model/positions.weight",
                                  "model/blocks.0.qkv.bias", "optim/master/blocks.0.qkv.weight"})
      EXPECT_EQ(state.find(kept_wide)->type, DataType::float32) << kept_wide;
  });
}

TEST(Precision, StaysFp32WhereTheDeviceDoesntMultiplyBf16) {
  struct WithoutBf16 final : Apart {
    Precision computes_in(Precision /*wanted*/) const override { return Precision::fp32; }
  } device;
  const Course kept = run(1, {"train.precision=bf16", "eval.every=4"}, &device);
  const Course full = run(1, {"eval.every=4"}, &device);
  EXPECT_EQ(kept.losses, full.losses);
  EXPECT_EQ(kept.hashes, full.hashes);
  const auto eval_losses = [](const Course& course) {
    std::vector<double> losses;
    for (const Json& line : course.lines)
      if (line.contains("eval/loss")) losses.push_back(line.at("eval/loss"));
    return losses;
  };
  EXPECT_THAT(eval_losses(kept), Not(IsEmpty()));
  EXPECT_EQ(eval_losses(kept), eval_losses(full));
  EXPECT_THAT(kept.told, Contains(AllOf(HasSubstr("computes in fp32 on a device apart"),
                                        HasSubstr("train.precision = \"bf16\" changes nothing"))));
  EXPECT_EQ(host_device().computes_in(Precision::bf16),
            multiplies_bf16() ? Precision::bf16 : Precision::fp32);
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
