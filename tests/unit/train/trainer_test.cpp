// Training through the trainer's door, on simulated ranks: what has to be bit-equal, and what nearly so.
#include "runtime/train/trainer.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "footplate/task.h"
#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::final_hash;
using ::testing::HasSubstr;
using testing::metrics_of;
using ::testing::Not;
using ::testing::Pair;
using testing::Rank;
using ::testing::SizeIs;
using testing::small_settings;
using testing::train;

/// Every rank's parameters side by side with another run's would need a tolerance: losses are compared.
void expect_same_losses(const std::vector<Json>& some, const std::vector<Json>& others, double tolerance) {
  ASSERT_EQ(some.size(), others.size());
  for (std::size_t i = 0; i < some.size(); ++i)
    EXPECT_NEAR(some[i].at("train/loss").get<double>(), others[i].at("train/loss").get<double>(), tolerance);
}

TEST(Trainer, OverlapChangesNothing) {
  const auto off = final_hash(3, {"comm.overlap=off"});
  EXPECT_EQ(final_hash(3, {"comm.overlap=on"}), off);
  EXPECT_EQ(final_hash(3, {"comm.overlap=auto"}), off);
  EXPECT_EQ(final_hash(3, {"comm.overlap=on", "comm.bucket_mb=64"}), off);
}

TEST(Trainer, ChunksChangeNothingAndAreSwitchedByAllRanksAtOnce) {
  const auto whole = final_hash(3, {});
  EXPECT_EQ(final_hash(3, {"comm.chunk_elements=100"}), whole);
  // Ranks that switched at different operations would be out of step.
  EXPECT_EQ(final_hash(3, {"comm.overlap=on"},
                       [](Rank& rank) {
                         rank.gate.change_at(3, "comm.chunk_elements", std::int64_t{77});
                         rank.gate.change_at(6, "comm.chunk_elements", std::int64_t{0});
                       }),
            whole);
}

TEST(Trainer, AccumulationAndNumberOfRanksChangeOnlyRounding) {
  const auto whole = metrics_of(1, {});
  EXPECT_LT(whole.back().at("train/loss").get<double>(), whole.front().at("train/loss").get<double>() - 0.5);
  expect_same_losses(metrics_of(1, {"train.micro_batch=3"}), whole, 2e-3);
  expect_same_losses(metrics_of(2, {}), whole, 2e-3);
  expect_same_losses(metrics_of(3, {"train.micro_batch=2"}), whole, 2e-3);
}

TEST(Trainer, SyntheticParametersAreBitEqualOnAnyNumberOfRanks) {
  const std::vector<std::string> task{"run.task=synthetic"};
  const auto one = final_hash(1, task);
  for (const int world_size : {2, 3, 9}) EXPECT_EQ(final_hash(world_size, task), one);  // 9: empty slices
  EXPECT_NE(final_hash(1, {"run.task=synthetic", "run.seed=2"}), one);
}

TEST(Trainer, SyntheticParametersDependOnTheExactStepOfAChange) {
  const auto changed_at = [](std::int64_t step) {
    return final_hash(2, {"run.task=synthetic"},
                      [step](Rank& rank) { rank.gate.change_at(step, "optim.lr_scale", 0.5); });
  };
  EXPECT_EQ(changed_at(5), changed_at(5));
  EXPECT_NE(changed_at(5), changed_at(6));
}

TEST(Trainer, EvaluationNeverChangesTraining) {
  const auto never = final_hash(2, {});
  EXPECT_EQ(final_hash(2, {"eval.every=1"}), never);
  EXPECT_EQ(final_hash(2, {"eval.every=7"}), never);
}

TEST(Trainer, LearningRateFollowsTheSettings) {
  const auto lines = metrics_of(1, {"sched.kind=constant"},
                                [](Rank& rank) { rank.gate.change_at(6, "sched.base_lr", 0.02); });
  EXPECT_DOUBLE_EQ(lines[0].at("train/lr").get<double>(), 0.0025);
  EXPECT_DOUBLE_EQ(lines[5].at("train/lr").get<double>(), 0.01);
  EXPECT_DOUBLE_EQ(lines[6].at("train/lr").get<double>(), 0.02);
}

TEST(Trainer, SaysHowTheComputedLearningRateMoved) {
  train(
      1, small_settings({"sched.kind=constant"}),
      [](Rank& rank) {
        rank.gate.change_at(6, "optim.lr_scale", 0.5);
        rank.gate.change_at(7, "log.every", std::int64_t{2});
      },
      [](Rank& rank) {
        ASSERT_THAT(rank.gate.moved[6], SizeIs(1));
        EXPECT_EQ(rank.gate.moved[6][0].name, "optim.lr");
        EXPECT_DOUBLE_EQ(std::get<double>(rank.gate.moved[6][0].before), 0.01);
        EXPECT_DOUBLE_EQ(std::get<double>(rank.gate.moved[6][0].after), 0.005);
        EXPECT_THAT(rank.gate.moved[7], SizeIs(0));
      });
}

TEST(Trainer, EverySteppedSettingCanChangeUnderWay) {
  const std::vector<std::pair<std::string, Value>> changes{{"train.micro_batch", std::int64_t{2}},
                                                           {"train.clip_norm", 0.0},
                                                           {"sched.kind", std::string("linear")},
                                                           {"optim.weight_decay", 0.0},
                                                           {"optim.eps", 1e-6},
                                                           {"comm.bucket_mb", 0.001},
                                                           {"comm.overlap", std::string("on")},
                                                           {"eval.every", std::int64_t{1}},
                                                           {"log.every", std::int64_t{3}}};
  final_hash(2, {}, [&](Rank& rank) {
    for (std::size_t i = 0; i < changes.size(); ++i)
      rank.gate.change_at(static_cast<std::int64_t>(i) + 1, changes[i].first, changes[i].second);
  });
}

TEST(Trainer, ClippingBoundsTheUpdateByTheGlobalNorm) {
  const auto free = metrics_of(1, {"train.clip_norm=0"});
  const auto wide = metrics_of(1, {"train.clip_norm=1000"});
  EXPECT_EQ(free.back().at("train/loss"), wide.back().at("train/loss"));
  const auto tight = metrics_of(1, {"train.clip_norm=0.1", "optim.eps=0.1"});
  EXPECT_NE(metrics_of(1, {"train.clip_norm=0", "optim.eps=0.1"}).back().at("train/loss"),
            tight.back().at("train/loss"));
  EXPECT_GT(free.front().at("train/grad_norm").get<double>(), 0.1);
}

TEST(Trainer, MetricsHaveTheirNames) {
  const auto lines = metrics_of(2, {"eval.every=10"});
  for (const char* name : {"step", "time", "branch", "train/loss", "train/lr", "train/epoch",
                           "train/grad_norm", "perf/step_ms", "perf/tokens_per_s", "perf/data_ms",
                           "perf/forward_ms", "perf/backward_ms", "perf/reduce_ms", "perf/optimizer_ms"})
    EXPECT_TRUE(lines[3].contains(name)) << name;
  EXPECT_EQ(lines[3].at("step"), 4);
  // By hand: the model of small_settings has 2 blocks of width 32, 256 symbols, context 16.
  constexpr double kBlock = (4 + 8) * 32 * 32 + (4 + 5 + 4) * 32;  // matrices; biases and norms
  constexpr double kFlops = 6 * (2 * kBlock + 256 * 32 + 2 * 32) + 12 * 2 * 32 * 16;
  EXPECT_NEAR(
      lines[3].at("perf/tflops").get<double>() * 1e12 / lines[3].at("perf/tokens_per_s").get<double>(),
      kFlops, 1e-6 * kFlops);
  EXPECT_FALSE(lines[3].contains("perf/mfu")) << "nobody knows what the processors can do";
  const Json told = metrics_of(2, {"run.peak_tflops=0.5"})[3];
  EXPECT_NEAR(told.at("perf/mfu").get<double>(), told.at("perf/tflops").get<double>() / (2 * 0.5), 1e-9);
  EXPECT_TRUE(lines.back().contains("eval/loss"));
  EXPECT_TRUE(lines.back().contains("eval/seconds"));
  EXPECT_EQ(lines.back().at("eval/best"), lines.back().at("eval/loss"));
}

TEST(Trainer, AFlippedBitIsToldByAllRanksOnceInAPeriod) {
  setenv("FOOTPLATE_FAULT", "flip_bit:rank=1:step=6", 1);
  std::map<std::int64_t, std::vector<StateHash>> told;
  std::mutex mutex;
  train(2, small_settings({"guard.check_every=3", "train.steps=14"}), {}, [&](Rank& rank) {
    const std::lock_guard lock(mutex);
    for (const auto& [step, state] : rank.gate.states) told[step].push_back(state);
  });
  unsetenv("FOOTPLATE_FAULT");
  ASSERT_THAT(told, ElementsAre(Pair(9, SizeIs(2)), Pair(12, SizeIs(2))));
  const auto& states = told.at(9);
  EXPECT_NE(states[0].hash, states[1].hash);
  ASSERT_EQ(states[0].tensors.size(), states[1].tensors.size());
  std::set<std::string> differing;
  for (std::size_t i = 0; i < states[0].tensors.size(); ++i)
    if (states[0].tensors[i] != states[1].tensors[i]) differing.insert(states[0].tensors[i].name);
  EXPECT_THAT(differing, ElementsAre("model/embedding.weight"));
}

TEST(Trainer, ARepairFromARankThatIsNoMoreIsRefusedOnAll) {
  train(
      2, small_settings(),
      [](Rank& rank) {
        rank.gate.call_at(5, {"guard.repair", {{"source", 2}}});
      },
      [](Rank& rank) {
        ASSERT_FALSE(rank.gate.results.at(5));
        EXPECT_THAT(rank.gate.results.at(5).error().message, HasSubstr("there is no rank 2 any more"));
      });
}

TEST(Trainer, TagsThatAreNoFolderNamesAreRefused) {
  train(1, small_settings(), [](Rank& rank) {
    Order order;
    order.calls = {{"ckpt.save", {{"tag", "../up"}}}};
    const auto refused = rank.trainer.prepare(order, small_settings());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("../up"));
    order.calls = {{"ckpt.save", {{"tag", "before-spike_2"}}}};
    EXPECT_TRUE(rank.trainer.prepare(order, small_settings()));
  });
}

TEST(Trainer, ACorpusThatIsMissingIsAUsageError) {
  Progress progress;
  train(1, small_settings(), [&](Rank& rank) {
    const auto trainer = Trainer::create(
        {small_settings({"data.corpus=no/such"}), rank.communicator, progress, 1, nullptr, nullptr, {}});
    ASSERT_FALSE(trainer);
    EXPECT_EQ(trainer.error().kind, ErrorKind::usage);
  });
}

/// A text of that many bytes as the corpus of a model with a context of 16: why it is refused.
std::string refused_text(int bytes) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("footplate-short-" + std::to_string(::getpid()) + ".txt");  // others may run beside this
  const std::string path = file.string();
  std::ofstream(path) << std::string(static_cast<std::size_t>(bytes), 'a');
  std::string message;
  Progress progress;
  train(1, small_settings(), [&](Rank& rank) {
    const auto trainer = Trainer::create(
        {small_settings({"data.corpus=" + path}), rank.communicator, progress, 1, nullptr, nullptr, {}});
    if (trainer) return;
    EXPECT_EQ(trainer.error().kind, ErrorKind::usage);
    message = trainer.error().message;
  });
  std::filesystem::remove(file);
  return message;
}

/// Its data are computed, without an end.
class Endless final : public v1::Task {
 public:
  std::vector<v1::Parameter> parameters() override { return {{"values", values_}}; }
  std::vector<v1::DataSet> data() override { return {{.name = "endless", .order = v1::Order::counted}}; }
  v1::Batch load(const v1::Samples& /*samples*/) override { return {}; }
  at::Tensor loss(const v1::Batch& /*batch*/, v1::Sums& /*sums*/) override { return {}; }

 private:
  const at::Tensor values_ = at::ones({3}).requires_grad_(true);
};

TEST(Trainer, EpochsOfDataWithoutEndAreRefusedLiveAsAtTheStart) {
  testing::run_ranks(1, [](int, Communicator& communicator, Progress& progress) {
    Settings settings = small_settings({"run.task=synthetic"});
    TrainerOptions options{settings, communicator, progress, 1, nullptr, nullptr, {}};
    options.wrap_task = [](std::unique_ptr<v1::Task>) { return std::make_unique<Endless>(); };
    const auto trainer = Trainer::create(std::move(options));
    ASSERT_TRUE(trainer) << trainer.error().message;
    settings.set("train.epochs", std::int64_t{2}, "test");
    Order order;
    order.changes.push_back({"train.epochs", std::int64_t{2}, {}});
    const auto prepared = (*trainer)->prepare(order, settings);
    ASSERT_FALSE(prepared);
    EXPECT_THAT(prepared.error().message, HasSubstr("have no end; set train.steps"));
  });
}

TEST(Trainer, ACorpusThatIsTooShortSaysHowMuchIsNeeded) {
  EXPECT_THAT(refused_text(5), AllOf(HasSubstr("has 5 bytes"), HasSubstr("model.context + 1 = 17"),
                                     HasSubstr("a text of at least 170 bytes"), Not(HasSubstr("or set"))));
  EXPECT_THAT(refused_text(169), HasSubstr("or set model.context below 16"));
  EXPECT_EQ(refused_text(170), "");
}

}  // namespace
}  // namespace footplate
