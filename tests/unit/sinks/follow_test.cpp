#include "console/sinks/follow.h"

#include "tests/unit/sinks/sink_fixture.h"

namespace footplate::sinks {
namespace {

class Kept final : public Sink {
 public:
  Result<void> write(const MetricsRow& row) override {
    steps.push_back(row.step);
    went_back.push_back(row.went_back);
    most_kept = std::max(most_kept, ++kept);
    return {};
  }
  Result<void> flush() override {
    kept = 0;
    return {};
  }
  std::vector<std::int64_t> steps;
  std::vector<int> went_back;
  std::size_t kept = 0, most_kept = 0;  ///< between two flushes
};

class MetricsFileTest : public SinkTest {
 protected:
  void append(const std::string& text) { std::ofstream(folder / "metrics.jsonl", std::ios::app) << text; }
  Kept kept;
};

TEST_F(MetricsFileTest, WhatComesLaterIsPassedOnOnce) {
  MetricsFile file(folder);
  EXPECT_EQ(*file.pass_on(kept), 0U);  // not there yet
  append("{\"step\":1}\n{\"step\":2}\n");
  EXPECT_EQ(*file.pass_on(kept), 2U);
  EXPECT_EQ(*file.pass_on(kept), 0U);
  append("{\"step\":3}\n");
  EXPECT_EQ(*file.pass_on(kept), 1U);
  EXPECT_EQ(kept.steps, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST_F(MetricsFileTest, ALineWithoutItsEndWaitsForIt) {
  MetricsFile file(folder);
  append("{\"step\":1}\n{\"st");
  EXPECT_EQ(*file.pass_on(kept), 1U);
  append("ep\":2}\nnonsense\n{\"step\":3}\n");
  EXPECT_EQ(*file.pass_on(kept), 2U);  // and what can't be read is left out
  EXPECT_EQ(kept.steps, (std::vector<std::int64_t>{1, 2, 3}));
}

/// A disk was full, or a rank was killed: the writer cuts off what is torn, and goes on there.
TEST_F(MetricsFileTest, ALineThatIsCutOffAgainCostsNoOther) {
  MetricsFile file(folder);
  append("{\"step\":1}\n{\"step\":2,\"to");
  EXPECT_EQ(*file.pass_on(kept), 1U);
  std::filesystem::resize_file(folder / "metrics.jsonl", std::string("{\"step\":1}\n").size());
  append("{\"step\":7}\n{\"step\":8}\n");
  EXPECT_EQ(*file.pass_on(kept), 2U);
  EXPECT_EQ(kept.steps, (std::vector<std::int64_t>{1, 7, 8}));
}

TEST_F(MetricsFileTest, AStartThatGoesBackInPlaceIsCounted) {
  MetricsFile file(folder);
  const auto trained = [](int start, int step) {
    return "{\"start\":" + std::to_string(start) + ",\"step\":" + std::to_string(step) +
           ",\"train/loss\":1}\n";
  };
  append(trained(1, 1) + trained(1, 2) + "{\"start\":1,\"step\":1,\"eval/loss\":1}\n" + trained(1, 2) +
         trained(1, 3) + trained(2, 2) + trained(2, 3));
  EXPECT_EQ(*file.pass_on(kept), 7U);
  EXPECT_EQ(kept.went_back, (std::vector<int>{0, 0, 0, 1, 1, 0, 0}));
}

TEST_F(MetricsFileTest, ALongFileIsNotKept) {
  std::string lines;
  constexpr int kLines = 20'000;
  for (int i = 0; i < kLines; ++i) lines += "{\"step\":1}\n";
  append(lines);
  MetricsFile file(folder);
  EXPECT_EQ(*file.pass_on(kept), static_cast<std::size_t>(kLines));
  EXPECT_LE(kept.most_kept, 5000U);
}

}  // namespace
}  // namespace footplate::sinks
