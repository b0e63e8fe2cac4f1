// What footplate proposes, and orders by itself, where collectives keep being late: the state machine without
// threads, and on whole ranks over SimWorld.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/schema/schema_table.h"
#include "runtime/watch/advice.h"
#include "tests/unit/control/sim_run.h"

namespace footplate {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMillion = 1'000'000;

/// A late collective as the test describes it.
struct Late {
  std::int64_t step = 0;
  double took_s = 1.5;
  std::vector<int> ranks = {0, 2};  ///< past the deadline in it
  std::int64_t elements = 1000;
  std::string setting = "comm.timeout_s";
  double limit_s = 1;
};

class AdviceTest : public ::testing::Test {
 protected:
  AdviceTest() {
    Settings settings = Settings::defaults(schema_);
    settings.set("comm.timeout_s", 1.0, "command line");
    settings.set("comm.medium_timeout_s", 1.0, "command line");
    settings.set("comm.chunk_elements", 16 * kMillion, "command line");
    begin(settings);
    for (int rank = 0; rank < kRanks; ++rank) status_.heard(rank, now_);
  }

  void begin(const Settings& settings) {
    advice_.emplace(Advice::Parts{schema_, status_, &ledger_, kRanks, kFirstOrder,
                                  [this](Order order) {
                                    if (next_order_ == 0) return next_order_;
                                    orders_.push_back(std::move(order));
                                    return next_order_++;
                                  },
                                  [this](Warning warning) { warnings_.push_back(std::move(warning)); }});
    SettingsUpdate all;
    for (const auto& [name, setting] : settings.all())
      all.settings[name] = {to_json(setting.value), setting.source};
    advice_->follow(all);
  }
  void set(const std::string& name, const Json& value, const std::string& source = "order 7 (ann)") {
    advice_->follow({{{name, {value, source}}}});
    tick();
  }
  void tick() { advice_->tick(now_); }

  void overdue(const Late& late) {
    ++sequence_;
    for (const int rank : late.ranks) advice_->handle(rank, overdue_of(late), now_);
    tick();
  }
  void over(const Late& late) {
    for (const int rank : late.ranks) {
      message::Overdue ended = overdue_of(late);
      ended.over = true;
      ended.took_s = late.took_s;
      advice_->handle(rank, ended, now_);
      tick();
    }
  }
  void late(const Late& late) {
    overdue(late);
    now_ += milliseconds(500);
    over(late);
  }
  void late_at_steps(std::int64_t first, std::int64_t last, Late one = {}) {
    for (one.step = first; one.step <= last; ++one.step) late(one);
  }
  /// Rank 0 has had so many operations of a size, each at this rate.
  void count(std::int64_t elements, double bytes_per_s, int times = 12) {
    for (int i = 0; i < times; ++i) {
      LedgerEntry counted =
          entry(Collective::all_reduce, {nullptr, elements, DataType::float32}, "gradients");
      const auto sequence = ledger_.enqueue(counted);
      ledger_.start(sequence);
      std::this_thread::sleep_for(
          std::chrono::duration<double>(static_cast<double>(4 * elements) / bytes_per_s));
      ledger_.finish(sequence);
    }
  }

  message::Overdue overdue_of(const Late& late) const {
    message::Overdue overdue;
    overdue.sequence = sequence_;
    overdue.kind = Collective::all_reduce;
    overdue.name = "gradients";
    overdue.step = late.step;
    overdue.elements = late.elements;
    overdue.bytes = 4 * late.elements;
    overdue.setting = late.setting;
    overdue.limit_s = late.limit_s;
    return overdue;
  }
  std::string text() const { return warnings_.empty() ? "" : warnings_.back().text; }
  std::string command() const { return warnings_.empty() ? "" : warnings_.back().command; }

  static constexpr int kRanks = 3;
  static constexpr std::uint64_t kFirstOrder = 10;
  Clock::time_point now_{hours(1000)};
  Schema schema_ = runtime_schema();
  StatusTracker status_{kRanks, {}, now_};
  Ledger ledger_;
  std::uint64_t sequence_ = 0;
  std::uint64_t next_order_ = kFirstOrder;
  std::vector<Order> orders_;
  std::vector<Warning> warnings_;
  std::optional<Advice> advice_;
};

TEST_F(AdviceTest, ProposesTwiceTheLongestAfterThreeSteps) {
  late({.step = 5, .took_s = 1.3});
  late({.step = 6, .took_s = 1.5});
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_THAT(advice_->proposals(), IsEmpty());
  late({.step = 9, .took_s = 1.2});
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_EQ(warnings_[0].kind, WarningKind::advice);
  EXPECT_EQ(warnings_[0].setting, "comm.timeout_s");
  EXPECT_EQ(warnings_[0].value, 3.0);
  EXPECT_EQ(command(), "comm.timeout_s = 3");
  EXPECT_EQ(
      text(),
      "all_reduce of gradients went past comm.timeout_s (1 s) at 3 steps (5 to 9) and ended after all, the "
      "longest after 1.5 s. If that is normal here: comm.timeout_s = 3");
  EXPECT_TRUE(orders_.empty());
  ASSERT_EQ(advice_->proposals().size(), 1U);
  EXPECT_EQ(advice_->proposals()[0].command, command());
  EXPECT_EQ(advice_->proposals()[0].text, text());
}

TEST_F(AdviceTest, SaysItOnceUntilItWouldNotBeEnoughOrTheSettingChanges) {
  late_at_steps(1, 12);
  EXPECT_EQ(warnings_.size(), 1U);
  late({.step = 13, .took_s = 4});
  ASSERT_EQ(warnings_.size(), 2U);
  EXPECT_EQ(command(), "comm.timeout_s = 8");
  late_at_steps(14, 20);
  EXPECT_EQ(warnings_.size(), 2U);
  set("comm.timeout_s", 2.0);
  EXPECT_THAT(advice_->proposals(), IsEmpty());
  late_at_steps(21, 22, {.took_s = 3, .limit_s = 2});
  EXPECT_EQ(warnings_.size(), 2U) << "the evidence begins anew";
  late({.step = 23, .took_s = 3, .limit_s = 2});
  EXPECT_EQ(command(), "comm.timeout_s = 6");
}

TEST_F(AdviceTest, NamesTheRankThatCameLastEachTime) {
  for (std::int64_t step = 1; step <= 3; ++step) {
    overdue({.step = step});
    advice_->found(CollectiveVerdict::missing, sequence_, {1});
    over({.step = step});
  }
  EXPECT_EQ(warnings_.at(0).ranks, std::vector{1});
  EXPECT_THAT(text(), HasSubstr("after 1.5 s; rank 1 came last each time. If"));
}

TEST_F(AdviceTest, OneBadMomentIsNoReason) {
  for (int bucket = 0; bucket < 10; ++bucket) late({.step = 5});
  EXPECT_THAT(warnings_, IsEmpty());
  now_ += minutes(61);
  late_at_steps(6, 7);
  EXPECT_THAT(warnings_, IsEmpty()) << "step 5 was too long ago";
  late({.step = 8});
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(AdviceTest, ProposesNothingWhileACollectiveHangs) {
  const Late hanging{.step = 1, .ranks = {2}};
  overdue(hanging);
  const std::uint64_t hangs = sequence_;
  late_at_steps(2, 9, {.ranks = {0}});
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_THAT(advice_->proposals(), IsEmpty());
  set("comm.auto", "apply");
  EXPECT_TRUE(orders_.empty());
  sequence_ = hangs;
  over(hanging);
  EXPECT_EQ(orders_.size(), 1U);
}

TEST_F(AdviceTest, WhatHasNotEndedOnAllRanksHasNotEnded) {
  late_at_steps(1, 2);
  overdue({.step = 3});
  over({.step = 3, .ranks = {2}});
  now_ += minutes(30);
  tick();
  EXPECT_THAT(warnings_, IsEmpty());
  over({.step = 3, .ranks = {0}});
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(AdviceTest, ProposesNothingWhileARankIsSilent) {
  late_at_steps(1, 2);
  overdue({.step = 3});
  now_ += seconds(10);
  status_.tick(now_);
  status_.heard(0, now_);
  status_.heard(1, now_);
  now_ += seconds(1);
  status_.tick(now_);
  ASSERT_TRUE(status_.anyone_silent());
  over({.step = 3});
  EXPECT_THAT(warnings_, IsEmpty());
  for (int rank = 0; rank < kRanks; ++rank) status_.heard(rank, now_);
  status_.tick(now_);
  tick();
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(AdviceTest, ProposesNothingOnceTheRanksHaveCalledDifferentCollectives) {
  late_at_steps(1, 3);
  ASSERT_EQ(advice_->proposals().size(), 1U);
  advice_->found(CollectiveVerdict::different, 4, {1});
  EXPECT_THAT(advice_->proposals(), IsEmpty());
  late_at_steps(4, 9, {.took_s = 9});
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(AdviceTest, OffIsSilentAndForgets) {
  late_at_steps(1, 2);
  set("comm.auto", "off");
  late_at_steps(3, 9);
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_THAT(advice_->proposals(), IsEmpty());
  set("comm.auto", "advise");
  late({.step = 10});
  EXPECT_THAT(warnings_, IsEmpty()) << "nothing was remembered";
}

TEST_F(AdviceTest, WhatWasMeasuredAgainstAnOldDeadlineDoesNotCount) {
  late_at_steps(1, 2);
  overdue({.step = 3});
  set("comm.timeout_s", 1.2);
  over({.step = 3});
  late_at_steps(4, 5, {.limit_s = 1.2});
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(AdviceTest, ADeadlineStaysInItsRange) {
  set("comm.timeout_s", 50000.0);
  late_at_steps(1, 3, {.took_s = 60000, .limit_s = 50000});
  EXPECT_EQ(command(), "comm.timeout_s = 86400");
}

TEST_F(AdviceTest, ApplyOrdersWhatWasSeenAndSaysHowToTakeItBack) {
  set("comm.auto", "apply");
  late_at_steps(1, 3);
  ASSERT_EQ(orders_.size(), 1U);
  ASSERT_EQ(orders_[0].changes.size(), 1U);
  EXPECT_EQ(orders_[0].changes[0].name, "comm.timeout_s");
  EXPECT_EQ(orders_[0].changes[0].value, Value(3.0));
  EXPECT_EQ(orders_[0].changes[0].expect, Value(1.0));
  EXPECT_THAT(orders_[0].source, HasSubstr("-- all_reduce of gradients went past comm.timeout_s (1 s)"));
  EXPECT_EQ(warnings_.at(0).order, kFirstOrder);
  EXPECT_THAT(text(),
              HasSubstr("Order 10 sets comm.timeout_s = 3 (comm.auto is \"apply\"); to take that back: "
                        "comm.timeout_s = 1"));
  late_at_steps(4, 9);
  EXPECT_EQ(orders_.size(), 1U) << "it is on its way";
}

TEST_F(AdviceTest, ApplyDoesWhatHadBeenAdvised) {
  late_at_steps(1, 3);
  EXPECT_TRUE(orders_.empty());
  set("comm.auto", "apply");
  EXPECT_EQ(orders_.size(), 1U);
}

TEST_F(AdviceTest, ApplyWaitsBetweenTwoOrdersAndEndsAtTenTimesWhatWasSet) {
  set("comm.auto", "apply");
  late_at_steps(1, 3);
  ASSERT_EQ(orders_.size(), 1U);
  set("comm.timeout_s", 3.0, "order 10 (footplate)");
  late_at_steps(4, 6, {.took_s = 4, .limit_s = 3});
  EXPECT_EQ(orders_.size(), 1U);
  now_ += minutes(10);
  tick();
  ASSERT_EQ(orders_.size(), 2U);
  EXPECT_EQ(orders_[1].changes[0].value, Value(8.0));
  set("comm.timeout_s", 8.0, "order 11 (footplate)");
  now_ += minutes(10);
  late_at_steps(7, 9, {.took_s = 9, .limit_s = 8});
  ASSERT_EQ(orders_.size(), 3U);
  EXPECT_EQ(orders_[2].changes[0].value, Value(10.0)) << "ten times 1 s, which was set";
  set("comm.timeout_s", 10.0, "order 12 (footplate)");
  now_ += minutes(10);
  late_at_steps(10, 12, {.took_s = 11, .limit_s = 10});
  EXPECT_EQ(orders_.size(), 3U);
  EXPECT_THAT(text(),
              HasSubstr("comm.timeout_s = 25 (comm.auto leaves it to you: too far from what was set)"));
  set("comm.timeout_s", 12.0, "order 13 (ann)");
  late_at_steps(13, 15, {.took_s = 20, .limit_s = 12});
  EXPECT_EQ(orders_.size(), 4U) << "somebody has set more";
}

TEST_F(AdviceTest, WhatIsPutBackByHandIsOnlyAdvisedFromThereOn) {
  set("comm.auto", "apply");
  late_at_steps(1, 3);
  set("comm.timeout_s", 3.0, "order 10 (footplate)");
  set("comm.timeout_s", 1.0, "order 11 (footplate)");  // a person of that name: no number of ours
  now_ += hours(1);
  late_at_steps(4, 9);
  EXPECT_EQ(orders_.size(), 1U);
  ASSERT_EQ(warnings_.size(), 2U);
  EXPECT_THAT(text(), HasSubstr("comm.timeout_s = 3 (comm.auto leaves it to you: it was put back by hand)"));
  set("comm.auto", "apply", "order 14 (ann)");
  EXPECT_EQ(orders_.size(), 2U) << "asked for again";
}

TEST_F(AdviceTest, AnotherWorldForgetsWhatWasSeenAndKeepsWhatWasSet) {
  set("comm.auto", "apply");
  late_at_steps(1, 2);
  advice_->world_changed(kRanks);
  late_at_steps(3, 4);
  EXPECT_TRUE(orders_.empty()) << "these ranks were late at two steps";
  late_at_steps(5, 5);
  ASSERT_EQ(orders_.size(), 1U);
  set("comm.timeout_s", 3.0, "order 10 (footplate)");
  set("comm.timeout_s", 1.0, "order 11 (ann)");
  advice_->world_changed(kRanks);
  now_ += hours(1);
  late_at_steps(6, 9);
  EXPECT_EQ(orders_.size(), 1U);
  EXPECT_THAT(text(), HasSubstr("comm.auto leaves it to you: it was put back by hand"));
}

TEST_F(AdviceTest, GoesNoFartherThanAnEarlierStartWent) {
  Settings settings = Settings::defaults(schema_);
  settings.set("comm.auto", std::string("apply"), "command line");
  settings.set("comm.timeout_s", 3.0, "order 4 (footplate)");
  begin(settings);
  late_at_steps(1, 3, {.took_s = 4, .limit_s = 3});
  EXPECT_TRUE(orders_.empty());
  EXPECT_THAT(text(), HasSubstr("comm.auto leaves it to you"));
}

TEST_F(AdviceTest, AnOrderThatIsNotTakenIsTriedAgain) {
  set("comm.auto", "apply");
  next_order_ = 0;
  late_at_steps(1, 3);
  EXPECT_THAT(warnings_, IsEmpty());
  next_order_ = 20;
  tick();
  EXPECT_EQ(orders_.size(), 1U);
}

// --- pieces ---

const std::vector<int> kAll{0, 1, 2};

Late large(double took_s = 40) {
  return {.took_s = took_s, .ranks = kAll, .elements = 50 * kMillion, .setting = "comm.medium_timeout_s"};
}

TEST_F(AdviceTest, ProposesSmallerPiecesWhereSmallerOperationsAreFaster) {
  count(100'000, 400e6);
  late_at_steps(1, 3, large());  // 5 MB/s
  ASSERT_EQ(warnings_.size(), 1U) << "and no longer deadline";
  EXPECT_EQ(command(), "comm.chunk_elements = 8000000");
  EXPECT_THAT(text(),
              AllOf(HasSubstr("all_reduce of gradients, in pieces of 16000000 elements, took longer than "
                              "comm.medium_timeout_s (1 s) at 3 steps (1 to 3) with all ranks in it: 5 "
                              "MB/s, where operations of 100000 to 999999 elements reach"),
                    HasSubstr("Smaller pieces would be faster: comm.chunk_elements = 8000000")));
}

TEST_F(AdviceTest, ALargeOperationThatIsAsFastAsSmallerOnesNeedsALongerDeadline) {
  count(100'000, 60e6);
  late_at_steps(1, 3, large(4));  // 50 MB/s
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_EQ(command(), "comm.medium_timeout_s = 8");
}

TEST_F(AdviceTest, WithoutAnythingToCompareWithPiecesStayAsTheyAre) {
  count(100'000, 400e6, 3);
  late_at_steps(1, 3, large());
  EXPECT_EQ(command(), "comm.medium_timeout_s = 80");
}

TEST_F(AdviceTest, WhereARankIsWaitedForPiecesAreNotTheReason) {
  count(100'000, 400e6);
  Late one = large();
  one.ranks = {0, 2};
  late_at_steps(1, 3, one);
  EXPECT_EQ(warnings_.size(), 1U);
  EXPECT_EQ(command(), "comm.medium_timeout_s = 80");
}

TEST_F(AdviceTest, WhereSmallerOperationsAreLateTooPiecesAreNotTheReason) {
  count(100'000, 400e6);
  late({.step = 1});
  late_at_steps(1, 3, large());
  EXPECT_EQ(command(), "comm.medium_timeout_s = 80");
}

TEST_F(AdviceTest, AppliesSmallerPiecesDownToATenthOfWhatWasSet) {
  set("comm.auto", "apply");
  count(100'000, 400e6);
  std::int64_t step = 1;
  std::vector<Value> values;
  for (std::uint64_t id = kFirstOrder; id < kFirstOrder + 3; ++id) {
    late_at_steps(step, step + 2, large());
    step += 3;
    now_ += minutes(10);
    ASSERT_EQ(orders_.size(), id - kFirstOrder + 1);
    ASSERT_EQ(orders_.back().changes[0].name, "comm.chunk_elements");
    values.push_back(orders_.back().changes[0].value);
    set("comm.chunk_elements", to_json(values.back()), "order " + std::to_string(id) + " (footplate)");
  }
  EXPECT_EQ(values, (std::vector<Value>{8 * kMillion, 4 * kMillion, 2 * kMillion}));
  late_at_steps(step, step + 2, large());
  EXPECT_EQ(orders_.size(), 3U);
  EXPECT_THAT(
      text(),
      HasSubstr("comm.chunk_elements = 1000000 (comm.auto leaves it to you: too far from what was set"));
}

TEST_F(AdviceTest, APieceIsNotMadeSmallerThanACallIsWorth) {
  set("comm.chunk_elements", 150'000);
  count(10'000, 400e6);
  late_at_steps(1, 3, large());
  EXPECT_EQ(command(), "comm.medium_timeout_s = 80");
}

}  // namespace

namespace testing {
namespace {

using ::testing::HasSubstr;

bool is_advice(const Json& warning) {
  return warning.value("kind", "") == "advice";
}

/// Ranks of which the last one comes late to a collective at each of these steps; the others wait for it past
/// the deadline.
void be_late(SimRun& run, std::int64_t first, std::int64_t last) {
  for (std::int64_t step = first; step <= last; ++step) {
    LedgerEntry made = entry(Collective::all_reduce, {nullptr, 1000, DataType::float32}, "gradients");
    made.phase = Phase::reduce;
    made.step = step;
    std::uint64_t sequence = 0;
    for (const int rank : {0, 1}) {
      sequence = run.ledger(rank).enqueue(made);
      run.ledger(rank).start(sequence);
    }
    const auto is_this = [&](const Json& data) {
      return data.value("sequence", std::uint64_t{0}) == sequence;
    };
    ASSERT_FALSE(run.wait_for("warn", is_this).is_null());
    run.ledger(2).start(run.ledger(2).enqueue(made));
    for (int rank = 0; rank < 3; ++rank) run.ledger(rank).finish(sequence);
    ASSERT_FALSE(
        run.wait_for("warn",
                     [&](const Json& data) { return is_this(data) && data.value("verdict", "") == "over"; })
            .is_null());
  }
}

SimRun::Options three_ranks(const std::string& mode) {
  SimRun::Options options;
  options.ranks = 3;
  options.world = {.seed = 3, .max_delay = std::chrono::microseconds(300)};
  options.settings = {{"comm.small_timeout_s", 0.3}, {"comm.auto", mode}};
  return options;
}

TEST(AdviceOfARun, IsAppliedByAllRanksAtOneStepAsAnOrderOfItsOwn) {
  SimRun run(three_ranks("apply"));
  be_late(run, 1, 3);
  const Json report = run.wait_for_order("", "applied");
  ASSERT_FALSE(report.is_null());
  EXPECT_EQ(report["order"]["session"], "footplate");
  EXPECT_EQ(report["order"]["user"], "footplate");
  EXPECT_THAT(report["order"]["source"].get<std::string>(),
              HasSubstr("went past comm.small_timeout_s (0.3 s) at 3 steps"));
  EXPECT_EQ(report["applied"]["ranks"], 3);
  ASSERT_EQ(report["applied"]["moved"].size(), 1U);
  EXPECT_EQ(report["applied"]["moved"][0]["name"], "comm.small_timeout_s");
  EXPECT_EQ(report["applied"]["moved"][0]["before"], 0.3);
  EXPECT_GT(report["applied"]["moved"][0]["after"].get<double>(), 0.6);
  const Json warning = run.wait_for("warn", is_advice);
  EXPECT_EQ(warning["order"], report["id"]);
  EXPECT_EQ(warning["value"], report["applied"]["moved"][0]["after"]);
  run.stop();
  ASSERT_EQ(run.record(0).changes.size(), 1U);
  for (int rank = 1; rank < 3; ++rank) EXPECT_EQ(run.record(rank).changes, run.record(0).changes);
}

TEST(AdviceOfARun, IsSaidAndNotDoneWhereNobodyAskedForMore) {
  SimRun run(three_ranks("advise"));
  be_late(run, 1, 3);
  const Json warning = run.wait_for("warn", is_advice);
  EXPECT_THAT(warning.value("command", ""), HasSubstr("comm.small_timeout_s = "));
  EXPECT_FALSE(warning.contains("order"));
  run.wait_for_step(run.step(0) + 5);
  run.stop();
  EXPECT_TRUE(run.record(0).changes.empty());
}

}  // namespace
}  // namespace testing
}  // namespace footplate
