// Which metrics are logged after which step, and of which steps they are means.
#include "runtime/train/reporter.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/compute_device.h"
#include "tests/unit/train/fixtures.h"

namespace footplate {
namespace {

using ::testing::ElementsAre;
using testing::metrics_of;
using testing::Rank;
using testing::small_settings;
using testing::train;

const std::vector<const char*> kDetails{"train/grad_norm",  "perf/data_ms",       "perf/forward_ms",
                                        "perf/backward_ms", "perf/reduce_ms",     "perf/optimizer_ms",
                                        "perf/data_ratio",  "perf/compute_ratio", "mem/resident_mib"};
const std::vector<const char*> kPerformanceNames{"perf/step_ms", "perf/tokens_per_s", "perf/tflops"};
const std::vector<const char*> kLight{"train/loss", "train/lr", "train/epoch"};

/// The steps of the lines that have it.
std::vector<std::int64_t> steps_with(const std::vector<Json>& lines, const char* name) {
  std::vector<std::int64_t> steps;
  for (const Json& line : lines)
    if (line.contains(name)) steps.push_back(line.at("step"));
  return steps;
}

double number(const std::vector<Json>& lines, std::int64_t step, const char* name) {
  for (const Json& line : lines)
    if (line.at("step") == step && line.contains(name)) return line.at(name);
  ADD_FAILURE() << "no " << name << " of step " << step;
  return 0;
}

/// What the phases of a line of details sum up to.
double phases_ms(const std::vector<Json>& lines, std::int64_t step) {
  double sum = 0;
  for (const char* name :
       {"perf/data_ms", "perf/forward_ms", "perf/backward_ms", "perf/reduce_ms", "perf/optimizer_ms"})
    sum += number(lines, step, name);
  return sum;
}

TEST(Reporter, EachKindComesAsOftenAsItsSettingSaysAndSharesTheLineOfItsStep) {
  const auto lines =
      metrics_of(2, {"train.steps=12", "log.every=2", "log.perf_every=3", "log.detail_every=6"});
  for (const char* name : kLight)
    EXPECT_THAT(steps_with(lines, name), ElementsAre(2, 4, 6, 8, 10, 12)) << name;
  for (const char* name : kPerformanceNames)
    EXPECT_THAT(steps_with(lines, name), ElementsAre(4, 6, 10, 12)) << name << " with the next line";
  for (const char* name : kDetails) EXPECT_THAT(steps_with(lines, name), ElementsAre(6, 12)) << name;
  EXPECT_THAT(steps_with(lines, "step"), ElementsAre(2, 4, 6, 8, 10, 12)) << "one line a step";
}

TEST(Reporter, EachKindIsAMeanOverTheStepsSinceItWasLoggedLast) {
  const auto lines =
      metrics_of(1, {"train.steps=12", "log.every=2", "log.perf_every=3", "log.detail_every=6"});
  for (const std::int64_t step : {6, 12}) {
    const double all = 4 * number(lines, step - 2, "perf/step_ms") + 2 * number(lines, step, "perf/step_ms");
    EXPECT_NEAR(phases_ms(lines, step), all / 6, 1e-9) << "of the same six steps, at step " << step;
  }
  EXPECT_NEAR(number(lines, 10, "perf/tokens_per_s") * number(lines, 10, "perf/step_ms") / 1e3, 7 * 16, 1e-6)
      << "the tokens of a step";
  const double parts = number(lines, 12, "perf/data_ratio") + number(lines, 12, "perf/compute_ratio");
  EXPECT_NEAR(parts, 1 - number(lines, 12, "perf/reduce_ms") / phases_ms(lines, 12), 1e-9);
}

TEST(Reporter, ByTimeAllRanksLogTheSameStep) {
  const auto lines = metrics_of(2, {"log.every=0", "log.perf_every=1h", "log.detail_every=5"});
  EXPECT_THAT(steps_with(lines, "step"), ElementsAre(5, 10));
}

TEST(Reporter, ReducedLeavesTheLightLineAlone) {
  const auto lines = metrics_of(1,
                                {"run.task=synthetic", "train.steps=14", "train.batch_size=13108",
                                 "log.every=2", "log.perf_every=3", "log.detail_every=3", "log.reduced=true"},
                                [](Rank& rank) { rank.gate.change_at(7, "log.reduced", false); });
  EXPECT_THAT(steps_with(lines, "train/loss"), ElementsAre(2, 4, 6, 8, 10, 12, 14));
  EXPECT_THAT(steps_with(lines, "perf/step_ms"), ElementsAre(10, 12));
  EXPECT_THAT(steps_with(lines, "train/grad_norm"), ElementsAre(10, 12));
  EXPECT_THAT(steps_with(lines, "perf/epoch_steps"), ElementsAre(10)) << "an epoch is 5 steps";
  EXPECT_EQ(number(lines, 10, "perf/epoch_steps"), 3) << "what was off isn't in the sums";
  EXPECT_THAT(steps_with(lines, "step"), ElementsAre(2, 4, 6, 8, 10, 12, 14));
}

TEST(Reporter, WhatIsSwitchedOnBeginsWithTheNextStep) {
  const auto lines = metrics_of(1, {"log.every=0", "log.perf_every=1", "log.detail_every=0"}, [](Rank& rank) {
    rank.gate.change_at(6, "log.detail_every", std::int64_t{4});
  });
  ASSERT_THAT(steps_with(lines, "train/grad_norm"), ElementsAre(8));
  EXPECT_NEAR(phases_ms(lines, 8), (number(lines, 7, "perf/step_ms") + number(lines, 8, "perf/step_ms")) / 2,
              1e-9);
}

TEST(Reporter, AnEpochIsSummedUpWhereItEnds) {
  const auto lines = metrics_of(2, {"run.task=synthetic", "train.steps=11", "train.batch_size=13108"});
  ASSERT_THAT(steps_with(lines, "perf/epoch_steps"), ElementsAre(5, 10));
  EXPECT_GE(number(lines, 5, "train/epoch"), 1) << "in the same line";
  double seconds = 0, step_ms = 0;
  for (const char* name : {"perf/epoch_data_loading_time", "perf/epoch_forward_time",
                           "perf/epoch_backward_time", "perf/epoch_reduce_time", "perf/epoch_optimizer_time"})
    seconds += number(lines, 10, name);
  for (const std::int64_t step : {6, 7, 8, 9, 10}) step_ms += number(lines, step, "perf/step_ms");
  EXPECT_NEAR(seconds, step_ms / 1e3, 1e-9);
  EXPECT_EQ(number(lines, 10, "perf/epoch_steps"), 5);
  EXPECT_NEAR(number(lines, 10, "perf/epoch_data_loading_ratio") * seconds,
              number(lines, 10, "perf/epoch_data_loading_time"), 1e-9);
  EXPECT_NEAR(number(lines, 10, "perf/epoch_compute_ratio") * seconds,
              seconds - number(lines, 10, "perf/epoch_data_loading_time") -
                  number(lines, 10, "perf/epoch_reduce_time"),
              1e-9);
  EXPECT_GT(number(lines, 10, "perf/epoch_avg_memory_gb"), 0.005);
}

TEST(Reporter, EpochsThatAreShorterThanTwoStepsAreNotSummedUp) {
  const auto lines = metrics_of(1, {"run.task=synthetic", "train.batch_size=32769"});
  EXPECT_THAT(steps_with(lines, "perf/epoch_steps"), ElementsAre());
}

/// In host memory, and treated as what the host doesn't reach. Each mark is 1 ms later than the one before it
/// was; the gauges show the number of the reading.
class Watched final : public ComputeDevice {
 public:
  at::Device where() const override { return at::kCPU; }
  bool is_host() const override { return false; }
  std::string description() const override { return "a device that is watched"; }
  /// Training waits for the gauges, which have a thread of their own.
  at::Tensor bring(const at::Tensor& host, bool /*pinned*/) const override {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (readings < wanted_readings && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    return host.clone();
  }
  at::Tensor host_floats(std::int64_t elements) const override { return at::zeros({elements}, at::kFloat); }
  void copy_out(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy_in(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }

  std::unique_ptr<TimeMarks> marks() const override {
    struct Marks final : TimeMarks {
      explicit Marks(std::atomic<int>& of_device) : all(of_device) {}
      bool mark() override {
        ++all;
        ++now;
        return true;
      }
      std::vector<double> take_seconds() override {
        std::vector<double> seconds;
        for (int i = 1; i < now; ++i) seconds.push_back(i / 1e3);
        now = 0;
        return seconds;
      }
      std::atomic<int>& all;
      int now = 0;
    };
    return std::make_unique<Marks>(marked);
  }

  Result<std::unique_ptr<Gauges>> gauges() const override {
    struct Shown final : Gauges {
      explicit Shown(std::atomic<int>& of_device) : all(of_device) {}
      GaugeReading read() override {
        return {.utilisation = ++all, .memory_mib = 5, .power_w = {}, .temperature_c = 40};
      }
      std::chrono::milliseconds renewed_every() const override { return std::chrono::milliseconds(1); }
      std::atomic<int>& all;
    };
    return std::make_unique<Shown>(readings);
  }

  mutable std::atomic<int> marked{0}, readings{0};
  int wanted_readings = 0;
};

std::vector<Json> lines_on(Watched& device, int world_size, const std::vector<std::string>& assignments) {
  std::vector<Json> lines;
  train(
      world_size, small_settings(assignments), {},
      [&](Rank& rank) {
        if (rank.communicator.rank() == 0) lines = rank.sink.lines;
      },
      &device);
  return lines;
}

/// data, data, forward, backward, data of the next step, reduce, optimizer, and what follows: 1 to 7 ms.
TEST(ReporterOnADevice, PhasesAreThoseOfTheDeviceInOneStepOfEachLine) {
  Watched device;
  const auto lines = lines_on(device, 1, {"train.steps=12", "log.perf_every=6", "log.detail_every=6"});
  ASSERT_THAT(steps_with(lines, "perf/data_ms"), ElementsAre(6, 12));
  for (const std::int64_t step : {6, 12}) {
    EXPECT_NEAR(number(lines, step, "perf/data_ms"), 1 + 2 + 5, 1e-9);
    EXPECT_NEAR(number(lines, step, "perf/forward_ms"), 3, 1e-9);
    EXPECT_NEAR(number(lines, step, "perf/backward_ms"), 4, 1e-9);
    EXPECT_NEAR(number(lines, step, "perf/reduce_ms"), 6, 1e-9);
    EXPECT_NEAR(number(lines, step, "perf/optimizer_ms"), 7, 1e-9);
    EXPECT_NEAR(number(lines, step, "perf/data_ratio"), 8 / 28.0, 1e-9);
  }
  EXPECT_EQ(device.marked, 3 * 8) << "one more for the epoch: its second step";
}

TEST(ReporterOnADevice, SumsOfAnEpochAreTheHostsTimeInTheDevicesParts) {
  Watched device;
  const auto lines = lines_on(
      device, 1, {"run.task=synthetic", "train.steps=10", "train.batch_size=13108", "log.detail_every=0"});
  ASSERT_THAT(steps_with(lines, "perf/epoch_steps"), ElementsAre(5, 10));
  double step_ms = 0;
  for (const std::int64_t step : {6, 7, 8, 9, 10}) step_ms += number(lines, step, "perf/step_ms");
  EXPECT_NEAR(number(lines, 10, "perf/epoch_forward_time"), step_ms / 1e3 * 3 / 28, 1e-9);
  EXPECT_NEAR(number(lines, 10, "perf/epoch_compute_ratio"), (3 + 4 + 7) / 28.0, 1e-9);
  EXPECT_EQ(device.marked, 2 * 8) << "the second step of each epoch";
}

TEST(ReporterOnADevice, ItsGaugesAreLoggedOfRank0AndNotWhileTheyAreOff) {
  Watched device;
  device.wanted_readings = 2;  // so that the first one can be had
  const auto lines =
      lines_on(device, 2, {"log.every=0", "log.perf_every=0", "log.detail_every=0", "log.gpu_every=4"});
  ASSERT_THAT(steps_with(lines, "gpu/util"), ElementsAre(4, 8));
  EXPECT_GE(number(lines, 4, "gpu/util"), 1);
  EXPECT_EQ(number(lines, 4, "gpu/memory_mib"), 5);
  EXPECT_EQ(number(lines, 4, "gpu/temperature_c"), 40);
  EXPECT_THAT(steps_with(lines, "gpu/power_w"), ElementsAre()) << "what it doesn't tell";
  Watched unread;
  EXPECT_THAT(steps_with(lines_on(unread, 1, {"log.gpu_every=4", "log.reduced=true"}), "gpu/util"),
              ElementsAre());
  EXPECT_EQ(unread.readings + unread.marked, 0);
}

/// What a reader says, once it says something.
template <class Look>
auto once_there(Look look) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  auto found = look();
  while (std::empty(found) && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
    found = look();
  }
  return found;
}

TEST(GaugeReader, SaysOnceWhyThereIsNothingToRead) {
  GaugeReader reader(
      []() -> Result<std::unique_ptr<Gauges>> { return fail(ErrorKind::failed, "no driver"); });
  EXPECT_EQ(once_there([&] { return reader.take_refusal(); }), "no driver");
  EXPECT_EQ(reader.take_refusal(), "");
  EXPECT_FALSE(reader.newest());
}

TEST(GaugeReader, ADriverThatIsStuckHoldsNobodyUp) {
  struct Stuck final : Gauges {
    explicit Stuck(std::shared_future<void> the_end) : end(std::move(the_end)) {}
    GaugeReading read() override {
      end.wait();
      return {};
    }
    std::chrono::milliseconds renewed_every() const override { return std::chrono::milliseconds(1); }
    const std::shared_future<void> end;
  };
  std::promise<void> released;
  {
    GaugeReader reader([end = released.get_future().share()]() -> Result<std::unique_ptr<Gauges>> {
      return std::make_unique<Stuck>(end);
    });
    EXPECT_FALSE(reader.newest());
  }  // comes back
  released.set_value();
}

}  // namespace
}  // namespace footplate
