#include "runtime/train/comm_metrics.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

namespace footplate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class CommMetricsTest : public ::testing::Test {
 protected:
  void reduce(std::int64_t elements, milliseconds takes = milliseconds(1)) {
    const auto sequence =
        ledger_.enqueue(entry(Collective::all_reduce, {nullptr, elements, DataType::float32}, "test"));
    ledger_.start(sequence);
    std::this_thread::sleep_for(takes);
    ledger_.finish(sequence);
  }
  std::optional<Json> take(std::int64_t step) { return metrics_.take(step, now_); }

  Ledger ledger_;
  CommMetrics metrics_{&ledger_};
  CommMetrics::Clock::time_point now_{seconds(1000)};
};

TEST_F(CommMetricsTest, AreOfTheTimeSinceTheLastLine) {
  metrics_.configure({.steps = 5}, now_);
  reduce(1'000'000, milliseconds(2));
  reduce(100, milliseconds(3));
  EXPECT_FALSE(take(4));
  const auto line = take(5);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->at("comm/collectives"), 2);
  EXPECT_NEAR(line->at("comm/mbytes").get<double>(), 4.0004, 1e-9);
  EXPECT_EQ(line->at("comm/timeouts"), 0);
  EXPECT_LE(line->at("comm/all_reduce_mb_per_s").get<double>(), 4.0 / 2e-3);
  EXPECT_GT(line->at("comm/all_reduce_mb_per_s").get<double>(), 0);
  EXPECT_GE(line->at("comm/small_ms").get<double>(), 3);
  EXPECT_EQ(line->at("comm/small_longest_ms"), line->at("comm/small_ms")) << "there was one";

  reduce(100);
  ledger_.count_overdue();
  const auto next = take(10);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->at("comm/collectives"), 1);
  EXPECT_LT(next->at("comm/small_longest_ms"), line->at("comm/small_longest_ms"));
  EXPECT_EQ(next->at("comm/timeouts"), 1);
  EXPECT_FALSE(next->contains("comm/all_reduce_mb_per_s")) << "there was none of a size that tells";
}

TEST_F(CommMetricsTest, ComeByTimeToo) {
  metrics_.configure({.seconds = 10}, now_);
  reduce(100);
  now_ += seconds(9);
  EXPECT_FALSE(take(7));
  now_ += seconds(1);
  EXPECT_TRUE(take(8));
  EXPECT_FALSE(take(9));
}

TEST_F(CommMetricsTest, ThereIsNoLineWhereThereIsNothingToTell) {
  metrics_.configure({.steps = 1}, now_);
  EXPECT_FALSE(take(1));
  CommMetrics none(nullptr);
  none.configure({.steps = 1}, now_);
  EXPECT_FALSE(none.take(1, now_));
  reduce(100);
  metrics_.configure({}, now_);
  EXPECT_FALSE(take(2)) << "0 = never";
}

}  // namespace
}  // namespace footplate
