#include "runtime/comm/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace footplate {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

LedgerEntry reduction(std::int64_t elements, Phase phase) {
  LedgerEntry made = entry(Collective::all_reduce, {nullptr, elements, DataType::float32}, "test");
  made.phase = phase;
  return made;
}

constexpr std::int64_t kMillions = 1'000'000;

TEST(Deadlines, AreTheLongerOneOfPhaseAndSize) {
  Deadlines deadlines;
  EXPECT_EQ(deadlines.of(reduction(10 * kMillions, Phase::boundary)), seconds(900));
  EXPECT_EQ(deadlines.of(reduction(100 * kMillions, Phase::starting)), seconds(1800));
  EXPECT_EQ(deadlines.of(reduction(50 * kMillions, Phase::reduce)), seconds(900));
  EXPECT_EQ(deadlines.of(reduction(50 * kMillions, Phase::evaluation)), seconds(1800));
  EXPECT_EQ(deadlines.shortest(), seconds(300));
  deadlines.training = seconds(1000);
  for (const Phase phase : {Phase::data, Phase::backward, Phase::reduce, Phase::optimizer})
    EXPECT_EQ(deadlines.of(reduction(50 * kMillions, phase)), seconds(1000));
}

TEST(Deadlines, SmallOperationsHaveTheirOwnInEveryPhase) {
  Deadlines deadlines;
  for (const Phase phase : {Phase::starting, Phase::data, Phase::forward, Phase::backward, Phase::reduce,
                            Phase::optimizer, Phase::boundary, Phase::evaluation, Phase::saving})
    for (const std::int64_t elements : {std::int64_t{0}, std::int64_t{4}, 10 * kMillions - 1}) {
      deadlines.small = seconds(300);
      EXPECT_EQ(deadlines.of(reduction(elements, phase)), seconds(300)) << to_string(phase);
      EXPECT_STREQ(deadlines.setting_of(reduction(elements, phase)), "comm.small_timeout_s");
      deadlines.small = seconds(3000);
      EXPECT_EQ(deadlines.of(reduction(elements, phase)), seconds(3000)) << to_string(phase);
    }
}

TEST(Deadlines, ComeFromTheSettingThatIsTheLonger) {
  Deadlines deadlines;
  EXPECT_STREQ(deadlines.setting_of(reduction(10 * kMillions, Phase::boundary)), "comm.medium_timeout_s");
  EXPECT_STREQ(deadlines.setting_of(reduction(100 * kMillions, Phase::reduce)), "comm.large_timeout_s");
  EXPECT_STREQ(deadlines.setting_of(reduction(10 * kMillions, Phase::evaluation)), "comm.eval_timeout_s");
  deadlines.medium = deadlines.training;
  EXPECT_STREQ(deadlines.setting_of(reduction(10 * kMillions, Phase::reduce)), "comm.timeout_s");
}

class WatchdogTest : public ::testing::Test {
 protected:
  static constexpr seconds kPatience{20};

  static Deadlines all(Deadlines::Duration limit) { return {limit, limit, limit, limit, limit}; }

  void heard(const Watchdog::Finding& finding) {
    std::lock_guard lock(mutex_);
    findings_.push_back(finding);
    changed_.notify_all();
  }
  /// The findings, once there are so many; fewer after kPatience.
  std::vector<Watchdog::Finding> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return findings_.size() >= count; });
    return findings_;
  }
  Watchdog::Listener listener() {
    return [this](const Watchdog::Finding& finding) { heard(finding); };
  }

  Ledger ledger_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Watchdog::Finding> findings_;
};

TEST_F(WatchdogTest, TellsWhatIsOverdueAndWhenItIsOver) {
  Watchdog watchdog(ledger_, all(milliseconds(5)), listener());
  ledger_.enqueue(reduction(3, Phase::reduce));
  ledger_.enqueue(reduction(4, Phase::reduce));  // waits on the account of the first
  ledger_.start(1);
  const auto overdue = wait_for(1);
  ASSERT_EQ(overdue.size(), 1U);
  EXPECT_EQ(overdue[0].entry.sequence, 1U);
  EXPECT_EQ(overdue[0].limit, milliseconds(5));
  EXPECT_STREQ(overdue[0].setting, "comm.small_timeout_s");
  EXPECT_FALSE(overdue[0].over);
  ledger_.finish(1);
  const auto over = wait_for(2);
  ASSERT_EQ(over.size(), 2U);
  EXPECT_TRUE(over[1].over);
  EXPECT_EQ(over[1].entry.sequence, 1U);
  EXPECT_TRUE(over[1].entry.is_finished());
  ledger_.start(2);
  EXPECT_EQ(wait_for(3).back().entry.sequence, 2U);
}

TEST_F(WatchdogTest, ADeadlineSetLiveIsForWhatIsUnderWay) {
  Watchdog watchdog(ledger_, all(hours(1)), listener());
  ledger_.enqueue(reduction(3, Phase::reduce));
  ledger_.start(1);
  watchdog.set(all(milliseconds(1)));
  EXPECT_EQ(wait_for(1).size(), 1U);
}

TEST_F(WatchdogTest, SaysNothingOfWhatEndsInTime) {
  Watchdog watchdog(ledger_, all(hours(1)), listener());
  for (int i = 0; i < 1000; ++i) {
    const auto sequence = ledger_.enqueue(reduction(3, Phase::reduce));
    ledger_.start(sequence);
    if (i % 100 == 0) watchdog.set(all(hours(1 + i)));  // looks
    ledger_.finish(sequence);
  }
  std::lock_guard lock(mutex_);
  EXPECT_TRUE(findings_.empty());
}

}  // namespace
}  // namespace footplate
