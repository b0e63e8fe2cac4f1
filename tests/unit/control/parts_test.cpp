// The pieces of control one by one, without threads: time and messages are given by the test.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/comm/doorbell.h"
#include "runtime/comm/sim/sim_world.h"
#include "runtime/comm/wake_event.h"
#include "runtime/orders/coordinator.h"
#include "runtime/orders/gate.h"
#include "runtime/orders/state_hashes.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

Committed agreed(std::uint64_t id, std::int64_t step, bool targeted, std::vector<Call> calls = {}) {
  Committed committed;
  committed.order.id = id;
  committed.order.calls = std::move(calls);
  if (committed.order.calls.empty())
    committed.order.changes = {{"eval.batches", static_cast<std::int64_t>(id), {}}};
  committed.step = step;
  committed.targeted = targeted;
  return committed;
}

class GateTest : public ::testing::Test, public Steerable {
 protected:
  GateTest() { gate_.set_steerable(*this); }

  Result<void> prepare(const Order&, const Settings&) override { return {}; }
  std::vector<Moved> settings_changed(const Settings& now, std::int64_t step) override {
    applied_.emplace_back(now.integer("eval.batches"), step);
    return {};
  }
  Result<Json> call(const Call&, std::int64_t) override { return Json{}; }

  Schema schema_ = runtime_schema();
  Progress progress_;
  Gate gate_{schema_, Settings::defaults(schema_), progress_, [] {}};
  std::vector<std::pair<std::int64_t, std::int64_t>> applied_;  ///< order, step
};

TEST_F(GateTest, AppliesByStepAndThenAsCommitted) {
  EXPECT_EQ(gate_.enter(0), StepGate::Verdict::train);
  gate_.commit(agreed(1, 5, true));
  gate_.commit(agreed(2, 2, false));
  gate_.commit(agreed(3, 2, false));
  for (std::int64_t step = 1; step < 7; ++step) EXPECT_EQ(gate_.enter(step), StepGate::Verdict::train);
  EXPECT_THAT(applied_, ElementsAre(std::pair(2, 2), std::pair(3, 2), std::pair(1, 5)));
}

TEST_F(GateTest, HoldsItsFenceUntilTheOutcome) {
  gate_.enter(4);
  EXPECT_EQ(gate_.propose_fence(), 5);
  std::atomic<bool> passed{false};
  std::thread training([&] {
    gate_.enter(5);
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
  gate_.enter(2);
  gate_.commit(agreed(1, 3, false, {{"run.pause", Json::object()}}));
  gate_.commit(agreed(2, 4, false));
  gate_.commit(agreed(3, 4, true));
  std::thread training([&] {
    gate_.enter(3);
    gate_.enter(4);
  });
  while (gate_.held() != Held::pause) std::this_thread::yield();
  EXPECT_EQ(gate_.propose_fence(), 3) << "nothing of step 3 has begun";
  gate_.commit(agreed(4, 4, false, {{"run.resume", Json::object()}}));
  training.join();
  EXPECT_THAT(applied_, ElementsAre(std::pair(2, 3), std::pair(3, 4)));
}

TEST_F(GateTest, HoldsAtTheNextStepWhereTrainingItselfPauses) {
  EXPECT_EQ(gate_.enter(2), StepGate::Verdict::train);
  gate_.pause();
  std::atomic<bool> passed{false};
  std::thread training([&] {
    gate_.enter(3);
    passed = true;
  });
  while (gate_.held() != Held::pause && !passed) std::this_thread::yield();
  EXPECT_FALSE(passed);
  EXPECT_EQ(gate_.propose_fence(), 3) << "nothing of step 3 has begun";
  gate_.commit(agreed(1, 4, false));
  gate_.commit(agreed(2, 4, false, {{"run.resume", Json::object()}}));
  training.join();
  EXPECT_THAT(applied_, ElementsAre(std::pair(1, 3)));
  EXPECT_EQ(gate_.enter(4), StepGate::Verdict::train);
}

TEST_F(GateTest, DropsAnOrderThatHasBecomeImpossibleAndSaysWhy) {
  Committed expecting = agreed(1, 3, true);
  expecting.order.changes[0].expect.emplace(std::int64_t{77});
  gate_.commit(expecting);
  gate_.enter(3);
  const auto events = gate_.drain();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(std::get<OrderApplied>(events[0]).error->message, HasSubstr("expected to be 77 but is 0"));
  EXPECT_TRUE(applied_.empty());
}

TEST_F(GateTest, AStopThatIsAgreedOnAbandonsWhatRunsButNotWhatComesAfterIt) {
  EXPECT_FALSE(gate_.abandon());
  gate_.commit(agreed(1, 9, true, {{"run.stop", Json::object()}}));
  EXPECT_FALSE(gate_.abandon()) << "one with a target lets things end";
  gate_.commit(agreed(2, 1, false, {{"run.stop", Json::object()}}));
  EXPECT_TRUE(gate_.abandon());
  gate_.finish();
  EXPECT_EQ(gate_.enter(1), StepGate::Verdict::end);
  EXPECT_FALSE(gate_.abandon());
  EXPECT_EQ(gate_.ending().reason, "asked");
}

TEST_F(GateTest, DropsEventsBeyondItsQueueAndCountsThem) {
  for (int i = 0; i < 5000; ++i) gate_.publish("metrics", {{"i", i}});
  const auto events = gate_.drain();
  EXPECT_EQ(events.size(), 4097U);
  EXPECT_THAT(std::get<Published>(events.back()).data["text"].get<std::string>(), HasSubstr("904 events"));
}

TEST_F(GateTest, WaitsForTheReleaseOfASyncEventAndForNothingElse) {
  gate_.publish("metrics", {{"step", 1}});
  EXPECT_EQ(std::get<Published>(gate_.drain().at(0)).hold, 0U);
  gate_.enter(1);
  gate_.set_sync({{"metrics", 60'000.0}});
  gate_.publish("eval", {{"step", 2}});
  EXPECT_EQ(std::get<Published>(gate_.drain().at(0)).hold, 0U);
  gate_.enter(2);
  gate_.publish("metrics", {{"step", 3}});
  const std::uint64_t hold = std::get<Published>(gate_.drain().at(0)).hold;
  EXPECT_NE(hold, 0U);
  std::atomic<bool> passed{false};
  std::thread training([&] {
    gate_.enter(3);
    passed = true;
  });
  while (gate_.held() != Held::rule) std::this_thread::yield();
  gate_.release(hold + 1);
  EXPECT_FALSE(passed);
  gate_.commit(agreed(1, 3, false));
  gate_.release(hold);
  training.join();
  EXPECT_THAT(applied_, ElementsAre(std::pair(1, 3))) << "what was agreed meanwhile applies at this step";
  gate_.publish("metrics", {{"step", 4}});
  gate_.set_sync(Json::object());  // the console that had the rule is gone
  gate_.enter(4);
}

TEST_F(GateTest, LetsALateRuleGoAndSaysItOnce) {
  gate_.set_sync({{"metrics", 5.0}});
  for (std::int64_t step = 1; step < 4; ++step) {
    gate_.publish("metrics", {{"step", step}});
    gate_.enter(step);
  }
  int said = 0;
  for (const auto& event : gate_.drain())
    if (std::get<Published>(event).topic == "warn") ++said;
  EXPECT_EQ(said, 1);
}

TEST_F(GateTest, StoreHoldsWhatOrdersPutThereAndRefusesTooMuch) {
  const auto put = [this](std::uint64_t id, const std::string& value) {
    gate_.commit(agreed(id, 1, false, {{"run.store", {{"name", "x"}, {"value", value}}}}));
    gate_.enter(1);
  };
  put(1, "[1,2]");
  EXPECT_EQ(gate_.store(), (Json{{"x", {1, 2}}}));
  put(2, '"' + std::string(70'000, 'x') + '"');
  EXPECT_EQ(std::get<CallMoved>(gate_.drain().back()).state, "failed");
  EXPECT_EQ(gate_.store(), (Json{{"x", {1, 2}}}));
  put(3, "null");
  EXPECT_TRUE(gate_.store().empty());
}

TEST_F(GateTest, AStopForAScriptsErrorSaysSo) {
  gate_.commit(agreed(1, 1, false, {{"run.stop", {{"error", "rule 3 failed"}}}}));
  gate_.finish();
  EXPECT_EQ(gate_.enter(1), StepGate::Verdict::end);
  EXPECT_TRUE(gate_.ending().script_error);
  EXPECT_TRUE(gate_.ending().save);
  EXPECT_EQ(gate_.ending().reason, "rule 3 failed");
}

/// Rank 0's state machine with two ranks that the test plays.
class CoordinatorTest : public ::testing::Test {
 protected:
  void order(const std::string& ref, const Json& more = Json::object()) {
    Json order = {{"session", "s1"}, {"changes", {{{"name", "log.every"}, {"value", 3}}}}};
    order.update(more);
    coordinator_.submit(ref, order, now_);
  }
  void answer(int rank, const Json& message) { coordinator_.handle(rank, message, now_); }
  void prepared(std::uint64_t ticket) {
    for (int rank : {0, 1}) answer(rank, {{"t", "prepared"}, {"ticket", ticket}});
  }
  void fenced(std::uint64_t ticket, std::int64_t step0, std::int64_t step1) {
    answer(0, {{"t", "fenced"}, {"ticket", ticket}, {"step", step0}});
    answer(1, {{"t", "fenced"}, {"ticket", ticket}, {"step", step1}});
  }
  void applied(int rank, std::uint64_t order, std::int64_t step, const std::string& digest = "d") {
    answer(rank, {{"t", "applied"}, {"order", order}, {"step", step}, {"digest", digest}});
  }
  void pass(Clock::duration time) {
    now_ += time;
    coordinator_.tick(now_);
  }
  const Json& last_sent() const { return sent_.back().second; }
  std::string last_state() const { return reports_.back().second.value("state", ""); }

  Schema schema_ = runtime_schema();
  Clock::time_point now_{seconds(1000)};
  RunStatus status_{2, {}, now_};
  std::vector<std::pair<int, Json>> sent_;
  std::vector<std::pair<std::string, Json>> reports_;
  Coordinator coordinator_{
      {schema_,
       status_,
       2,
       [this](int to, const Json& message) { sent_.emplace_back(to, message); },
       [this](const std::string& topic, const Json& data) { reports_.emplace_back(topic, data); },
       {},
       100}};
};

TEST_F(CoordinatorTest, CommitsAtTheHighestFenceAndConfirms) {
  order("a");
  EXPECT_EQ(last_sent()["t"], "prepare");
  prepared(1);
  EXPECT_EQ(last_sent()["t"], "fence");
  fenced(1, 11, 14);
  EXPECT_EQ(last_sent(), (Json{{"t", "commit"}, {"ticket", 1}, {"step", 14}, {"targeted", false}}));
  applied(1, 100, 14);
  EXPECT_EQ(last_state(), "committed");
  applied(0, 100, 14);
  EXPECT_EQ(last_state(), "applied");
  EXPECT_EQ(reports_.back().second["applied"]["ranks"], 2);
  EXPECT_EQ(coordinator_.final_reports().size(), 1U);
}

TEST_F(CoordinatorTest, OpensOneOrderAtATime) {
  order("a");
  order("b");
  EXPECT_EQ(sent_.size(), 2U);
  prepared(1);
  fenced(1, 5, 5);
  EXPECT_EQ(last_sent()["t"], "prepare");
  EXPECT_EQ(last_sent()["order"]["id"], 101);
}

TEST_F(CoordinatorTest, NeverCommitsOrdersWithoutTargetOutOfTheirOrder) {
  order("a");
  prepared(1);
  fenced(1, 11, 12);
  order("b");  // meanwhile both ranks stand in a pause at 11
  prepared(2);
  fenced(2, 11, 11);
  EXPECT_EQ(last_sent()["step"], 12);
  order("c", {{"at_step", 11}});
  prepared(3);
  fenced(3, 11, 11);
  EXPECT_EQ(last_sent()["step"], 12);
  EXPECT_EQ(last_sent()["targeted"], false);
}

TEST_F(CoordinatorTest, SaysWhomItWaitsForRarerAndRarerAndAbortsInTheEnd) {
  order("a");
  answer(0, {{"t", "prepared"}, {"ticket", 1}});
  answer(1,
         {{"t", "beat"},
          {"step", 812},
          {"phase", "reduce"},
          {"phase_s", 0.5},
          {"state", "running"},
          {"collective", {{"sequence", 4471}, {"kind", "all_reduce"}, {"running", true}, {"age_s", 0.5}}}});
  reports_.clear();
  for (int i = 0; i < 49; ++i) pass(milliseconds(100));
  int waiting = 0;
  for (const auto& [topic, report] : reports_) {
    if (topic != "order") continue;
    EXPECT_EQ(report["state"], "waiting");
    EXPECT_THAT(report["text"].get<std::string>(),
                HasSubstr("waiting for rank 1: step 812, all_reduce #4471, "));
    ++waiting;
  }
  EXPECT_EQ(waiting, 2) << "after 1 s and after 3 s";
  pass(milliseconds(100));
  EXPECT_EQ(last_state(), "aborted");
  EXPECT_EQ(last_sent()["t"], "abort");
  prepared(1);  // too late
  EXPECT_EQ(last_sent()["t"], "abort");
}

TEST_F(CoordinatorTest, TakesBackACommittedOrderOnlyWhereNobodyCanHaveReachedIt) {
  order("a", {{"at_step", 50}});
  prepared(1);
  fenced(1, 10, 10);
  coordinator_.withdraw({{"id", 100}}, now_);
  EXPECT_EQ(last_sent()["withdraws"], 100);
  prepared(2);
  fenced(2, 50, 50);
  EXPECT_EQ(last_sent()["t"], "abort");
  coordinator_.withdraw({{"ref", "a"}}, now_);
  prepared(3);
  fenced(3, 49, 49);
  EXPECT_EQ(last_sent(), (Json{{"t", "commit"}, {"ticket", 3}, {"withdraws", 100}}));
  EXPECT_EQ(last_state(), "withdrawn");
}

TEST_F(CoordinatorTest, RaisesTheAlarmWhereRanksDisagree) {
  order("a");
  prepared(1);
  fenced(1, 5, 5);
  applied(0, 100, 5, "one");
  applied(1, 100, 5, "two");
  EXPECT_EQ(last_state(), "applied");
  EXPECT_EQ(reports_.back().second["applied"]["ranks"], 1);
  EXPECT_THAT(reports_.back().second["error"].get<std::string>(), HasSubstr("rank 1 differs"));
  EXPECT_FALSE(status_.to_json(10, now_)["notes"].empty());
}

TEST_F(CoordinatorTest, EndsOnceEveryRankAtTheEndHasHeardOfEveryCommit) {
  answer(0, {{"t", "end"}, {"step", 20}, {"commits", 0}});
  order("a");
  prepared(1);
  fenced(1, 20, 20);
  applied(0, 100, 20);
  applied(1, 100, 20);
  answer(1, {{"t", "end"}, {"step", 20}, {"commits", 0}});  // said before it heard of the commit
  answer(1, {{"t", "end"}, {"step", 20}, {"commits", 1}});
  EXPECT_FALSE(coordinator_.ended());
  answer(0, {{"t", "end"}, {"step", 20}, {"commits", 1}});
  EXPECT_TRUE(coordinator_.ended());
  EXPECT_EQ(last_sent()["t"], "finish");
  order("b");
  EXPECT_EQ(last_state(), "refused");
}

TEST(RunStatusTest, NamesWhoIsMissingFromACollective) {
  const Clock::time_point start{seconds(1000)};
  RunStatus status(3, {}, start);
  const auto beat = [&](int rank, std::uint64_t sequence, bool running, double age_s) {
    status.heard(rank, start);
    status.beat(rank,
                {{"step", 812},
                 {"phase", "data"},
                 {"phase_s", 43.0},
                 {"state", "running"},
                 {"collective",
                  {{"sequence", sequence}, {"kind", "all_reduce"}, {"running", running}, {"age_s", age_s}}}},
                start);
  };
  beat(0, 4471, true, 42);
  beat(1, 4470, false, 42);
  beat(2, 4471, true, 42);
  const Json json = status.to_json(1000, start);
  EXPECT_EQ(json["notes"][0],
            "collective #4471 waits for rank 1: step 812, data after all_reduce #4470, 43 s");
  EXPECT_EQ(json["ranks"].size(), 3U);
}

TEST(RunStatusTest, MarksWhereASilentRankWas) {
  const Clock::time_point start{seconds(1000)};
  RunStatus status(2, {}, start);
  const Json beat = {{"step", 812}, {"phase", "data"}, {"phase_s", 40.0}, {"state", "running"}};
  status.beat(1, beat, start);
  EXPECT_EQ(status.whom({1}, start + milliseconds(500)), "rank 1: step 812, data, 40 s");
  EXPECT_EQ(status.whom({1}, start + milliseconds(3200)), "rank 1: step 812, data, last heard 3.2 s ago");
}

TEST(RunStatusTest, TheBestEvaluationIsTheTrainersChoice) {
  const auto now = Clock::now();
  RunStatus status(1, {}, now);
  status.metrics({{"eval/loss", 3.0}});
  EXPECT_TRUE(status.to_json(10, now)["best_eval_loss"].is_null());
  status.beat(0, {{"best_eval_loss", 2.0}}, now);  // of the checkpoint, before any evaluation of this start
  EXPECT_EQ(status.to_json(10, now)["best_eval_loss"], 2.0);
  status.metrics({{"eval/loss", 1.0}, {"eval/best", 2.0}});  // partial, or on other batches
  EXPECT_EQ(status.to_json(10, now)["eval_loss"], 1.0);
  EXPECT_EQ(status.to_json(10, now)["best_eval_loss"], 2.0);
}

TEST(RunStatusTest, TellsOfAnEvaluationBesideTraining) {
  const auto now = Clock::now();
  RunStatus status(1, {}, now);
  status.beat(0, {{"step", 9}}, now);
  EXPECT_TRUE(status.to_json(10, now)["evaluating_step"].is_null());
  status.beat(0, {{"step", 9}, {"evaluating_step", 5}}, now);
  EXPECT_EQ(status.to_json(10, now)["evaluating_step"], 5);
}

TEST(RunStatusTest, BlamesNobodyAfterRankZeroItselfWasStopped) {
  Clock::time_point now{seconds(1000)};
  const ControlTimes times;
  RunStatus status(2, times, now);
  const auto own = status.tick(now += seconds(10));
  ASSERT_EQ(own.size(), 1U) << "its own silence, which nobody else could tell of";
  EXPECT_EQ(own[0]["rank"], 0);
  EXPECT_EQ(own[0]["state"], "back");
  EXPECT_THAT(own[0]["text"].get<std::string>(), HasSubstr("rank 0 is back: it was silent for 10 s"));
  status.heard(0, now);
  EXPECT_TRUE(status.tick(now += times.heartbeat / 2).empty());
  status.heard(0, now += times.heartbeat / 2);
  EXPECT_EQ(status.tick(now).size(), 1U) << "rank 1 had its time";
}

TEST(RunStatusTest, CountsSilenceFromWhenAHeartbeatWasSentOnItsOwnHost) {
  const Clock::time_point start{seconds(1000)};
  const ControlTimes times;
  RunStatus status(3, times, start);
  const auto beat = [&](int rank, const char* host, Clock::time_point sent, Clock::time_point read) {
    status.beat(rank, {{"host", host}, {"at_ns", std::chrono::nanoseconds(sent.time_since_epoch()).count()}},
                read);
  };
  const auto read = start + milliseconds(400);
  beat(0, "a", read, read);
  beat(1, "a", start + milliseconds(50), read);
  beat(2, "b", start - seconds(500), read);  // another host's clock
  EXPECT_TRUE(status.tick(read).empty());
  EXPECT_EQ(status.next_tick(), start + milliseconds(50) + times.stalled);
  const auto changes = status.tick(status.next_tick() + milliseconds(1));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0]["rank"], 1);
}

TEST(StateHashesTest, NamesTheMinorityAndBothWhereThereIsNone) {
  StateHashes three(3);
  EXPECT_FALSE(three.add(0, 10, 1) || three.add(1, 10, 2));
  EXPECT_THAT(three.add(2, 10, 1)->odd, ElementsAre(1));
  StateHashes two(2);
  two.add(0, 10, 1);
  EXPECT_THAT(two.add(1, 10, 2)->odd, ElementsAre(0, 1));
  two.add(0, 20, 3);
  EXPECT_FALSE(two.add(1, 20, 3));
}

TEST(SimChannelTest, KeepsTheOrderBetweenTwoRanksAndItsDelays) {
  Clock::time_point now{seconds(1000)};
  SimOptions options;
  options.seed = 3;
  options.max_delay = milliseconds(5);
  options.now = [&] { return now; };
  SimWorld world(2, options);
  auto from = world.channel(0);
  auto to = world.channel(1);
  for (int i = 0; i < 100; ++i) from->send(1, i);
  now += milliseconds(2);
  int next = 0;
  while (auto message = to->poll()) EXPECT_EQ(message->body, next++);
  EXPECT_LT(next, 100);
  now += milliseconds(5);
  while (auto message = to->poll()) EXPECT_EQ(message->body, next++);
  EXPECT_EQ(next, 100);
}

TEST(DoorbellTest, RingsAndRefusesALongPath) {
  std::string name = "/tmp/footplate-bell-XXXXXX";  // TMPDIR's path may be too long for a socket
  const std::filesystem::path directory = ::mkdtemp(name.data());
  auto zero = Doorbell::install(directory, 0).value();
  auto one = Doorbell::install(directory, 1).value();
  WakeEvent sleep;
  EXPECT_FALSE(sleep.wait(milliseconds(1), one->fd(), -1).fd0);
  for (int i = 0; i < 100; ++i) zero->ring(1);  // more than the socket's queue holds
  zero->ring(7);                                // nobody there
  EXPECT_TRUE(sleep.wait(seconds(5), one->fd(), -1).fd0);
  one->silence();
  EXPECT_FALSE(sleep.wait(milliseconds(1), one->fd(), -1).fd0);
  const auto refused = Doorbell::install(directory / std::string(100, 'x'), 0);
  EXPECT_THAT(refused.error().message, HasSubstr("at most 107 bytes"));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace footplate
