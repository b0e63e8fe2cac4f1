#include "console/sinks/follow.h"

#include "tests/unit/sinks/sink_fixture.h"

namespace footplate::sinks {
namespace {

class Kept final : public Sink {
 public:
  Result<void> write(const MetricsRow& row) override {
    steps.push_back(row.step);
    return {};
  }
  Result<void> flush() override { return {}; }
  std::vector<std::int64_t> steps;
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

}  // namespace
}  // namespace footplate::sinks
