#include "runtime/orders/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>

#include "runtime/schema/schema_table.h"
#include "tests/unit/orders/committed_order.h"

namespace footplate {
namespace {

using testing::agreed;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GateTest : public ::testing::Test, public Steerable {
 protected:
  GateTest() { gate_.set_steerable(*this); }

  Result<void> prepare(const Order&, const Settings&) override { return {}; }
  std::vector<Moved> settings_changed(const Settings& now, std::int64_t step) override {
    applied_.emplace_back(now.integer("eval.batches"), step);
    return {};
  }
  Result<CallResult> call(const Call&, std::int64_t) override { return CallResult(); }
  Result<void> take_up(const Rejoin&) override { return std::exchange(taken_up_, {}); }

  Schema schema_ = runtime_schema();
  Progress progress_;
  Gate gate_{schema_, Settings::defaults(schema_), progress_, [] {}};
  StepGate& training_ = gate_.training();
  std::vector<std::pair<std::int64_t, std::int64_t>> applied_;  ///< order, step
  Result<void> taken_up_;
};

TEST_F(GateTest, AppliesByStepAndThenAsCommitted) {
  EXPECT_EQ(training_.enter(0), StepGate::Verdict::train);
  gate_.commit(agreed(1, 5, true));
  gate_.commit(agreed(2, 2, false));
  gate_.commit(agreed(3, 2, false));
  for (std::int64_t step = 1; step < 7; ++step) EXPECT_EQ(training_.enter(step), StepGate::Verdict::train);
  EXPECT_THAT(applied_, ElementsAre(std::pair(2, 2), std::pair(3, 2), std::pair(1, 5)));
}

TEST_F(GateTest, HoldsItsFenceUntilTheOutcome) {
  training_.enter(4);
  EXPECT_EQ(gate_.propose_fence(), 5);
  std::atomic<bool> passed{false};
  std::thread training([&] {
    training_.enter(5);
    passed = true;
  });
  while (gate_.held() != Held::fence) std::this_thread::yield();
  EXPECT_FALSE(passed);
  gate_.commit(agreed(1, 5, false));
  training.join();
  EXPECT_THAT(applied_, ElementsAre(std::pair(1, 5)));
  EXPECT_EQ(gate_.stops_at_fences(), 1U);
  EXPECT_GT(gate_.time_at_fences().count(), 0);
}

TEST_F(GateTest, InAPauseAppliesWhatHasNoTargetWhateverItsStep) {
  training_.enter(2);
  gate_.commit(agreed(1, 3, false, {{"run.pause", Json::object()}}));
  gate_.commit(agreed(2, 4, false));
  gate_.commit(agreed(3, 4, true));
  std::thread training([&] {
    training_.enter(3);
    training_.enter(4);
  });
  while (gate_.held() != Held::pause) std::this_thread::yield();
  EXPECT_EQ(gate_.propose_fence(), 3) << "nothing of step 3 has begun";
  gate_.commit(agreed(4, 4, false, {{"run.resume", Json::object()}}));
  training.join();
  EXPECT_THAT(applied_, ElementsAre(std::pair(2, 3), std::pair(3, 4)));
}

TEST_F(GateTest, HoldsAtTheNextStepWhereTrainingItselfPauses) {
  EXPECT_EQ(training_.enter(2), StepGate::Verdict::train);
  training_.pause();
  std::atomic<bool> passed{false};
  std::thread training([&] {
    training_.enter(3);
    passed = true;
  });
  while (gate_.held() != Held::pause && !passed) std::this_thread::yield();
  EXPECT_FALSE(passed);
  EXPECT_EQ(gate_.propose_fence(), 3) << "nothing of step 3 has begun";
  gate_.commit(agreed(1, 4, false));
  gate_.commit(agreed(2, 4, false, {{"run.resume", Json::object()}}));
  training.join();
  EXPECT_THAT(applied_, ElementsAre(std::pair(1, 3)));
  EXPECT_EQ(training_.enter(4), StepGate::Verdict::train);
}

TEST_F(GateTest, ItsStateCountsOnceItIsLevelThoughAnotherRankIsLostBeforeItGoesOn) {
  taken_up_ = fail(ErrorKind::lost, "rank 0 is lost");
  gate_.join(0, 0);
  std::thread training([&] { EXPECT_EQ(training_.enter(0), StepGate::Verdict::train); });
  const auto standing = [&] {
    while (!gate_.recovery_state()) std::this_thread::yield();
    return *gate_.recovery_state();
  };
  EXPECT_EQ(standing().step, -1) << "of a process that has just joined";
  gate_.resume({.step = 7, .level = true, .behind = true, .save = true, .tag = "kept"}, 0, 0, false, false);
  EXPECT_EQ(standing().step, 7);
  EXPECT_EQ(standing().save, "kept") << "isn't made yet";
  gate_.resume({.step = 7, .save = true, .tag = "kept"}, 0, 0, false, false);
  training.join();
}

/// Another rank, which stood paused, has applied at 3 what is agreed for 4, and goes on with 3. Here it is
/// due at 3, too.
TEST_F(GateTest, WhatAnotherRankHasAppliedBeforeALossIsDueWhereAllGoOn) {
  EXPECT_EQ(training_.enter(2), StepGate::Verdict::train);
  training_.pause();
  std::thread training([&] { EXPECT_EQ(training_.enter(3), StepGate::Verdict::train); });
  while (gate_.held() != Held::pause) std::this_thread::yield();
  gate_.hold_for_recovery();
  while (!gate_.recovery_state()) std::this_thread::yield();
  Committed ends_pause = agreed(1, 4, false);
  ends_pause.order.calls = {{"run.resume", Json::object()}};
  gate_.commit(ends_pause);
  gate_.commit(agreed(2, 4, false));
  gate_.resume({.step = 3, .applied = 1}, 2, 0, /*paused=*/false, false);
  training.join();
  EXPECT_THAT(applied_, ElementsAre(std::pair(1, 3))) << "and nothing that the other rank has yet to apply";
  EXPECT_EQ(training_.enter(4), StepGate::Verdict::train);
  EXPECT_THAT(applied_, ElementsAre(std::pair(1, 3), std::pair(2, 4)));
}

TEST_F(GateTest, DropsAnOrderThatHasBecomeImpossibleAndSaysWhy) {
  Committed expecting = agreed(1, 3, true);
  expecting.order.changes[0].expect.emplace(std::int64_t{77});
  gate_.commit(expecting);
  training_.enter(3);
  const auto events = gate_.drain();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(std::get<OrderApplied>(events[0]).error->message, HasSubstr("expected to be 77 but is 0"));
  EXPECT_TRUE(applied_.empty());
}

TEST_F(GateTest, AStopThatIsAgreedOnAbandonsWhatRunsButNotWhatComesAfterIt) {
  EXPECT_FALSE(training_.abandon());
  gate_.commit(agreed(1, 9, true, {{"run.stop", Json::object()}}));
  EXPECT_FALSE(training_.abandon()) << "one with a target lets things end";
  gate_.commit(agreed(2, 1, false, {{"run.stop", Json::object()}}));
  EXPECT_TRUE(training_.abandon());
  gate_.finish();
  EXPECT_EQ(training_.enter(1), StepGate::Verdict::end);
  EXPECT_FALSE(training_.abandon());
  EXPECT_EQ(training_.ending().reason, "asked");
}

TEST_F(GateTest, DropsEventsBeyondItsQueueAndCountsThem) {
  for (int i = 0; i < 5000; ++i) training_.publish(LoggedMetrics{{{"i", i}}});
  const auto events = gate_.drain();
  EXPECT_EQ(events.size(), 4097U);
  EXPECT_THAT(std::get<Warning>(std::get<Published>(events.back()).data).text, HasSubstr("904 events"));
}

TEST_F(GateTest, WaitsForTheReleaseOfASyncEventAndForNothingElse) {
  training_.publish(LoggedMetrics{{{"step", 1}}});
  EXPECT_EQ(std::get<Published>(gate_.drain().at(0)).hold, 0U);
  training_.enter(1);
  gate_.set_sync({{{Topic::metrics, 60'000.0}}});
  training_.publish(EvaluationResult());
  EXPECT_EQ(std::get<Published>(gate_.drain().at(0)).hold, 0U);
  training_.enter(2);
  training_.publish(LoggedMetrics{{{"step", 3}}});
  const std::uint64_t hold = std::get<Published>(gate_.drain().at(0)).hold;
  EXPECT_NE(hold, 0U);
  std::atomic<bool> passed{false};
  std::thread training([&] {
    training_.enter(3);
    passed = true;
  });
  while (gate_.held() != Held::rule) std::this_thread::yield();
  gate_.release(hold + 1);
  EXPECT_FALSE(passed);
  gate_.commit(agreed(1, 3, false));
  gate_.release(hold);
  training.join();
  EXPECT_THAT(applied_, ElementsAre(std::pair(1, 3))) << "what was agreed meanwhile applies at this step";
  training_.publish(LoggedMetrics{{{"step", 4}}});
  gate_.set_sync({});  // the console that had the rule is gone
  training_.enter(4);
}

TEST_F(GateTest, LetsALateRuleGoAndSaysItOnce) {
  gate_.set_sync({{{Topic::metrics, 5.0}}});
  for (std::int64_t step = 1; step < 4; ++step) {
    training_.publish(LoggedMetrics{{{"step", step}}});
    training_.enter(step);
  }
  int said = 0;
  for (const auto& event : gate_.drain())
    if (topic_of(std::get<Published>(event).data) == Topic::warn) ++said;
  EXPECT_EQ(said, 1);
}

TEST_F(GateTest, StoreHoldsWhatOrdersPutThereAndRefusesTooMuch) {
  const auto put = [this](std::uint64_t id, const std::string& value) {
    gate_.commit(agreed(id, 1, false, {{"run.store", {{"name", "x"}, {"value", value}}}}));
    training_.enter(1);
  };
  put(1, "[1,2]");
  EXPECT_EQ(training_.store(), (Json{{"x", {1, 2}}}));
  put(2, '"' + std::string(70'000, 'x') + '"');
  EXPECT_EQ(std::get<CallMoved>(gate_.drain().back()).state, CallState::failed);
  EXPECT_EQ(training_.store(), (Json{{"x", {1, 2}}}));
  put(3, "null");
  EXPECT_TRUE(training_.store().empty());
}

TEST_F(GateTest, AStopForAScriptsErrorSaysSo) {
  gate_.commit(agreed(1, 1, false, {{"run.stop", {{"error", "rule 3 failed"}}}}));
  gate_.finish();
  EXPECT_EQ(training_.enter(1), StepGate::Verdict::end);
  EXPECT_TRUE(training_.ending().script_error);
  EXPECT_TRUE(training_.ending().save);
  EXPECT_EQ(training_.ending().reason, "rule 3 failed");
}

}  // namespace
}  // namespace footplate
