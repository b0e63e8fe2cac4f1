// One order in every situation it can meet, on whole ranks over SimWorld.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/control/sim_run.h"

namespace footplate::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SimRun::Options ranks(int count, microseconds step_time = milliseconds(1)) {
  SimRun::Options options;
  options.ranks = count;
  options.step_time = step_time;
  return options;
}

std::string error_of(const Json& report) {
  return report.value("error", "");
}

TEST(Order, IsConfirmedWithDigestAndWhatMoved) {
  SimRun run(ranks(3));
  run.order("a", {{"log.every", 7}, {"optim.lr_scale", 0.5}});
  const Json report = run.wait_for_outcome("a");
  ASSERT_EQ(report["state"], "applied") << report;
  EXPECT_EQ(report["applied"]["ranks"], 3);
  EXPECT_EQ(report["applied"]["digest"].get<std::string>().size(), 16U);
  EXPECT_EQ(report["applied"]["moved"].size(), 2U);
  EXPECT_EQ(report["order"]["user"], "ann");
  run.stop();
  EXPECT_EQ(run.record(0).changes.front().step, report["applied"]["step"]);
  EXPECT_EQ(run.record(2).changes.front().digest, report["applied"]["digest"]);
}

Committed ahead(std::uint64_t id, std::int64_t step, std::int64_t log_every) {
  Order order;
  order.id = id;
  order.user = "ann";
  order.at_step = step;
  order.changes = {{"log.every", Value(log_every), std::nullopt}};
  return {order, step, /*targeted=*/true};
}

TEST(OrdersAhead, ApplyAtTheirStepsOnAllRanksAndAreReported) {
  auto options = ranks(3);
  options.ahead = {ahead(7, 0, 3), ahead(9, 20, 4), ahead(8, 20, 5)};
  for (int i = 0; i < 300; ++i)
    options.ahead.push_back(ahead(1000 + static_cast<std::uint64_t>(i), 1'000'000, 6));
  SimRun run(options);
  const auto applied = [](std::uint64_t id) {
    return [id](const Json& report) { return report["state"] == "applied" && report["id"] == id; };
  };
  EXPECT_EQ(run.wait_for("order", applied(8))["applied"]["step"], 20);
  EXPECT_EQ(run.wait_for("order", applied(7))["applied"]["step"], 0);
  const Json second = run.wait_for("order", applied(9));
  EXPECT_EQ(second["applied"]["ranks"], 3);
  EXPECT_EQ(second["applied"]["moved"][0]["before"], 3);
  EXPECT_EQ(second["order"]["user"], "ann");
  // Those that wait count against nobody's limit, and don't swell every status.
  run.order("a", {{"log.every", 50}});
  EXPECT_EQ(run.wait_for_outcome("a")["state"], "applied");
  EXPECT_LE(run.control(0).status().orders.size(), 101U);
  run.stop();
  for (int rank = 1; rank < 3; ++rank) EXPECT_EQ(run.record(rank).changes, run.record(0).changes);
  EXPECT_EQ(run.wait_for("order", [](const Json& report) { return report["id"] == 1299; })["state"],
            "withdrawn");
}

TEST(Order, OfOneRankAlone) {
  SimRun run(ranks(1));
  run.order("a", {{"log.every", 7}}, {"eval.now"});
  EXPECT_EQ(run.wait_for_outcome("a")["state"], "applied");
  run.stop();
  EXPECT_THAT(run.record(0).calls, ElementsAre(HasSubstr("eval.now at ")));
}

TEST(Order, RefusedByOneRankChangesNothingAnywhere) {
  auto options = ranks(3);
  options.prepare = [](int rank, const Order& order) -> Result<void> {
    if (rank == 2 && !order.changes.empty() && order.changes[0].name == "comm.bucket_mb")
      return fail(ErrorKind::failed, "no memory left");
    return {};
  };
  SimRun run(options);
  run.order("a", {{"comm.bucket_mb", 64.0}});
  const Json report = run.wait_for_outcome("a");
  EXPECT_EQ(report["state"], "refused");
  EXPECT_EQ(error_of(report), "rank 2: no memory left");
  run.order("b", {{"log.every", 3}});
  EXPECT_EQ(run.wait_for_outcome("b")["state"], "applied");
  run.stop();
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(run.record(rank).changes.size(), 1U);
  EXPECT_EQ(run.record(2).changes, run.record(0).changes);
}

TEST(Order, ThatTheSchemaForbidsIsRefusedWithTheReason) {
  SimRun run(ranks(2));
  run.order("name", {{"log.evry", 3}});
  EXPECT_THAT(error_of(run.wait_for_outcome("name")), HasSubstr("did you mean log.every"));
  run.order("fixed", {{"model.width", 64}});
  EXPECT_THAT(error_of(run.wait_for_outcome("fixed")), HasSubstr("fixed for the life of a run"));
  run.order("together", {{"log.every", 3}, {"optim.lr_scale", -1}});
  EXPECT_EQ(run.wait_for_outcome("together")["state"], "refused");
  run.order("micro", {{"train.micro_batch", 1000}, {"log.every", 5}});
  EXPECT_THAT(error_of(run.wait_for_outcome("micro")), HasSubstr("a micro-batch is cut"));
  run.order("nothing", Json::object());
  EXPECT_THAT(error_of(run.wait_for_outcome("nothing")), HasSubstr("asks for nothing"));
  run.send({{"type", "order"}, {"ref", "odd"}, {"order", 12}});
  EXPECT_THAT(error_of(run.wait_for_outcome("odd")), HasSubstr("has to be an object"));
  run.stop();
  EXPECT_THAT(run.record(0).changes, IsEmpty());
}

TEST(Order, ExpectsTheValueThatWillBeInForce) {
  SimRun run(ranks(2));
  const auto expecting = [](Json value, Json expect) {
    return Json{{"changes", {{{"name", "log.every"}, {"value", value}, {"expect", expect}}}}};
  };
  run.order("a", Json::object(), Json::array(), expecting(20, 10));
  run.order("b", Json::object(), Json::array(), expecting(30, 20));  // a isn't applied yet, but will be
  run.order("c", Json::object(), Json::array(), expecting(40, 10));
  EXPECT_EQ(run.wait_for_outcome("a")["state"], "applied");
  EXPECT_EQ(run.wait_for_outcome("b")["state"], "applied");
  EXPECT_THAT(error_of(run.wait_for_outcome("c")), HasSubstr("expected to be 10 but is 30"));
  run.stop();
}

TEST(Order, WithATargetAppliesExactlyThere) {
  SimRun run(ranks(2));
  run.wait_for_step(5);
  const std::int64_t target = run.step(0) + 60;
  run.order("later", {{"eval.batches", 2}}, Json::array(), {{"at_step", target}});
  run.order("now", {{"eval.batches", 1}});
  run.order("past", {{"log.every", 9}}, Json::array(), {{"at_step", 2}});
  EXPECT_LT(run.wait_for_outcome("now")["applied"]["step"], target);
  EXPECT_EQ(run.wait_for_outcome("past")["state"], "applied");
  EXPECT_EQ(run.wait_for_outcome("later")["applied"]["step"], target);
  run.stop();
  const auto& used = run.record(0).batches_used;
  ASSERT_GT(used.size(), static_cast<std::size_t>(target));
  EXPECT_EQ(used[static_cast<std::size_t>(target - 1)], 1);
  EXPECT_EQ(used[static_cast<std::size_t>(target)], 2);
  EXPECT_EQ(run.record(1).batches_used, used);
}

TEST(Order, WithATargetPastTheEndIsRefused) {
  auto options = ranks(2);
  options.settings = {{"train.steps", std::int64_t{100000}}};
  SimRun run(options);
  run.order("a", {{"log.every", 3}}, Json::array(), {{"at_step", 100001}});
  EXPECT_THAT(error_of(run.wait_for_outcome("a")),
              HasSubstr("step 100001 lies past the end of the run (train.steps = 100000)"));
  // Its own train.steps would come too late: the run ends before it applies.
  run.order("b", {{"train.steps", 200000}}, Json::array(), {{"at_step", 100001}});
  EXPECT_THAT(error_of(run.wait_for_outcome("b")), HasSubstr("raise train.steps first"));
  run.order("c", {{"train.steps", 200000}});
  EXPECT_EQ(run.wait_for_outcome("c")["state"], "applied");
  run.order("d", {{"log.every", 5}}, Json::array(), {{"at_step", 100001}});
  EXPECT_EQ(run.wait_for_order("d", "committed")["step"], 100001);
  run.stop();
  EXPECT_THAT(error_of(run.wait_for_outcome("d")), HasSubstr("before step 100001"));
}

TEST(Order, MayWaitForAStepAfterAnAgreedEnd) {
  SimRun run(ranks(2));
  const Json stop = Json::array({{{"action", "run.stop"}, {"arguments", Json::object()}}});
  const Json evaluation = Json::array({{{"action", "eval.now"}, {"arguments", Json::object()}}});
  run.order("end", Json::object(), stop, {{"at_step", 900000}});
  ASSERT_FALSE(run.wait_for_order("end", "committed").is_null());
  run.order("after", Json::object(), evaluation, {{"at_step", 900001}});
  ASSERT_FALSE(run.wait_for_order("after", "committed").is_null());
  run.order("same", Json::object(), evaluation, {{"at_step", 900000}});
  EXPECT_THAT(error_of(run.wait_for_outcome("same")), HasSubstr("the run is stopping"));
  run.stop();
  EXPECT_EQ(run.wait_for_outcome("after")["state"], "withdrawn");
}

TEST(Order, ThatWouldMakeALaterOneImpossibleIsRefused) {
  SimRun run(ranks(2));
  run.order("later", {{"nccl.min_ctas", 5}}, Json::array(), {{"at_step", 900000}});
  ASSERT_FALSE(run.wait_for_order("later", "committed").is_null());
  run.order("now", {{"train.steps", 1000000}});
  EXPECT_EQ(run.wait_for_outcome("now")["state"], "applied");
  run.order("smaller", {{"nccl.max_ctas", 4}});
  EXPECT_THAT(error_of(run.wait_for_outcome("smaller")), HasSubstr("due at step 900000"));
  run.stop();
}

/// What was given after an order that is withdrawn may have become impossible. It is dropped at its step, and
/// keeps nobody from anything, least of all from a stop.
TEST(Order, ThatIsImpossibleAlreadyMakesNoOtherImpossible) {
  SimRun run(ranks(2));
  run.order("larger", {{"nccl.max_ctas", 32}}, Json::array(), {{"at_step", 800000}});
  const Json larger = run.wait_for_order("larger", "committed");
  run.order("later", {{"nccl.min_ctas", 32}}, Json::array(), {{"at_step", 900000}});
  ASSERT_FALSE(run.wait_for_order("later", "committed").is_null());
  run.order("smaller", {{"nccl.max_ctas", 16}});
  EXPECT_EQ(run.wait_for_outcome("smaller")["state"], "applied");
  run.send({{"type", "withdraw"}, {"id", larger["id"]}});
  EXPECT_EQ(run.wait_for_outcome("larger")["state"], "withdrawn");
  run.order("other", {{"log.every", 7}});
  EXPECT_EQ(run.wait_for_outcome("other")["state"], "applied");
  run.order("call", Json::object(), {"eval.now"});
  EXPECT_EQ(run.wait_for_outcome("call")["state"], "applied");
  run.control(0).request_stop("signal", true);
  run.join();
  EXPECT_EQ(run.record(1).ending.reason, "signal");
}

TEST(Order, CommittedIsTakenBackBeforeItsStep) {
  SimRun run(ranks(3));
  run.order("a", {{"log.every", 3}}, Json::array(), {{"at_step", 500000}});
  const Json committed = run.wait_for_order("a", "committed");
  run.send({{"type", "withdraw"}, {"id", committed["id"]}});
  EXPECT_EQ(run.wait_for_outcome("a")["state"], "withdrawn");
  run.order("b", {{"log.every", 4}}, Json::array(), {{"at_step", run.step(0) + 20}});
  const Json applied = run.wait_for_outcome("b");
  EXPECT_EQ(applied["state"], "applied");
  run.send({{"type", "withdraw"}, {"id", applied["id"]}});  // too late: nothing happens
  run.order("c", {{"log.every", 5}});
  EXPECT_EQ(run.wait_for_outcome("c")["state"], "applied");
  run.stop();
  EXPECT_EQ(run.record(0).changes.size(), 2U);
  EXPECT_EQ(run.record(2).changes, run.record(0).changes);
}

TEST(Order, IsWithdrawnWhileARankDoesNotAnswer) {
  SimRun run(ranks(2));
  run.wait_for_step(3);
  run.world().pause(1, SimWorld::Clock::now() + milliseconds(300));
  run.order("a", {{"log.every", 3}});
  run.order("queued", {{"log.every", 4}});
  ASSERT_FALSE(run.wait_for_order("queued", "accepted").is_null());
  run.send({{"type", "withdraw"}, {"ref", "queued"}});
  run.send({{"type", "withdraw"}, {"ref", "a"}});
  EXPECT_EQ(run.wait_for_outcome("a")["state"], "withdrawn");
  EXPECT_EQ(run.wait_for_outcome("queued")["state"], "withdrawn");
  run.stop();
  EXPECT_THAT(run.record(0).changes, IsEmpty());
  EXPECT_THAT(run.record(1).changes, IsEmpty());
}

TEST(Order, WithoutOutcomeIsAbortedAndNamesTheRank) {
  auto options = ranks(3);
  options.times.outcome = milliseconds(900);
  options.times.waiting = milliseconds(200);
  options.times.heartbeat = milliseconds(20);
  options.times.stalled = milliseconds(150);
  SimRun run(options);
  const auto heard = [](const Json& status) { return status["ranks"][1]["step"] > 0; };
  ASSERT_FALSE(run.wait_for_status(heard).is_null());
  run.world().pause(1, SimWorld::Clock::now() + milliseconds(1500));
  run.order("a", {{"log.every", 3}});
  const Json waiting = run.wait_for_order("a", "waiting");
  EXPECT_THAT(waiting.value("text", ""), HasSubstr("waiting for rank 1: step "));
  const Json report = run.wait_for_outcome("a");
  EXPECT_EQ(report["state"], "aborted");
  EXPECT_THAT(error_of(report), HasSubstr("no outcome within 0.9 s: waited for rank 1"));
  const auto is_back = [](const Json& data) { return data["rank"] == 1 && data["state"] == "back"; };
  EXPECT_FALSE(run.wait_for("rank", is_back).is_null());
  run.order("b", {{"log.every", 4}});
  EXPECT_EQ(run.wait_for_outcome("b")["state"], "applied");
  run.stop();
  EXPECT_EQ(run.record(0).changes.size(), 1U);
  EXPECT_EQ(run.record(1).changes, run.record(0).changes);
}

TEST(Order, PastTheQueueIsRefused) {
  auto options = ranks(2);
  options.times.queue = 3;
  SimRun run(options);
  run.wait_for_step(2);
  run.world().pause(1, SimWorld::Clock::now() + milliseconds(200));
  for (int i = 0; i < 8; ++i) run.order("q" + std::to_string(i), {{"log.every", i + 1}});
  EXPECT_THAT(error_of(run.wait_for_outcome("q7")), HasSubstr("3 orders wait for their turn"));
  EXPECT_EQ(run.wait_for_outcome("q3")["state"], "applied");
  run.stop();
}

TEST(Calls, RunOnEveryRankAfterTheSettingsAndReportRankZerosResult) {
  auto options = ranks(2);
  options.call = [](int rank, const Call& call, std::int64_t, StepGate& gate) -> Result<CallResult> {
    if (call.action == "ckpt.save") return fail(ErrorKind::failed, "disk full");
    return StateRepaired{gate.settings().integer("eval.batches"), rank};
  };
  SimRun run(options);
  run.order("a", {{"eval.batches", 5}}, {"eval.now", "ckpt.save"});
  const Json applied = run.wait_for_outcome("a");
  ASSERT_EQ(applied["calls"].size(), 2U);
  EXPECT_EQ(applied["calls"][1]["action"], "ckpt.save");
  const Json done = run.wait_for("call", [](const Json& call) { return call["state"] == "done"; });
  EXPECT_EQ(done["result"], (Json{{"source", 0}, {"step", 5}}));
  const Json failed = run.wait_for("call", [](const Json& call) { return call["state"] == "failed"; });
  EXPECT_EQ(failed["error"], "disk full");
  EXPECT_EQ(failed["call"], 1);
  run.stop();
  EXPECT_EQ(run.record(1).calls, run.record(0).calls);
}

/// A call that runs until it is told to give up.
Result<CallResult> until_abandoned(int, const Call& call, std::int64_t, StepGate& gate) {
  const auto deadline = SimWorld::Clock::now() + std::chrono::seconds(10);
  while (call.action == "eval.now" && !gate.abandon() && SimWorld::Clock::now() < deadline)
    sleep_for(microseconds(100));
  if (gate.abandon()) return fail(ErrorKind::failed, "given up");
  return CallResult();
}

TEST(Calls, AreReportedAppliedWhileTheyRunAndCanBeCancelled) {
  auto options = ranks(2);
  options.call = until_abandoned;
  SimRun run(options);
  run.order("a", Json::object(), {"eval.now"});
  const Json applied = run.wait_for_outcome("a");
  EXPECT_EQ(applied["state"], "applied");
  run.send({{"type", "cancel"}, {"order", applied["id"]}, {"call", 0}});
  const auto ended = [](const Json& call) { return call["state"] != "running"; };
  EXPECT_EQ(run.wait_for("call", ended)["state"], "cancelled");
  EXPECT_FALSE(run.control(0).gate().abandon());
  run.stop();
}

TEST(Calls, AreGivenUpForAStop) {
  auto options = ranks(2);
  options.call = until_abandoned;
  SimRun run(options);
  run.order("a", Json::object(), {"eval.now"});
  EXPECT_EQ(run.wait_for_outcome("a")["state"], "applied");
  run.stop();
  EXPECT_EQ(run.record(0).ending.reason, "asked");
  EXPECT_FALSE(run.control(0).gate().abandon()) << "the last checkpoint isn't given up";
}

TEST(Pause, HoldsAllRanksAtOneStepAndOrdersApplyThere) {
  for (int round = 0; round < 15; ++round) {
    auto options = ranks(3, microseconds(0));
    options.world.seed = static_cast<std::uint64_t>(round);
    options.world.max_delay = microseconds(400);
    SimRun run(options);
    run.order("pause", Json::object(), {"run.pause"});
    run.order("b", {{"eval.batches", 1}});  // agreed on before or while the pause begins
    run.order("c", {{"eval.batches", 2}});
    const Json pause = run.wait_for_outcome("pause");
    const Json b = run.wait_for_outcome("b");
    const Json c = run.wait_for_outcome("c");
    run.order("d", {{"eval.batches", 3}}, {"eval.now"});
    const Json d = run.wait_for_outcome("d");
    for (const auto* report : {&b, &c, &d})
      ASSERT_EQ((*report)["applied"]["step"], pause["applied"]["step"]) << *report;
    run.order("later", {{"eval.batches", 9}}, Json::array(),
              {{"at_step", pause["applied"]["step"].get<int>() + 2}});
    ASSERT_FALSE(run.wait_for_order("later", "committed").is_null());
    EXPECT_EQ(run.step(0), pause["applied"]["step"]);
    run.order("resume", {{"eval.batches", 4}}, {"run.resume"});
    EXPECT_EQ(run.wait_for_outcome("resume")["applied"]["step"], pause["applied"]["step"]);
    EXPECT_EQ(run.wait_for_outcome("later")["state"], "applied");
    run.stop();
    ASSERT_EQ(run.record(1).changes, run.record(0).changes) << round;
    ASSERT_EQ(run.record(2).changes, run.record(0).changes) << round;
    ASSERT_EQ(run.record(0).changes.size(), 5U);
  }
}

TEST(Pause, IsShownAndEndsWithAStop) {
  auto options = ranks(2);
  options.times.heartbeat = milliseconds(10);
  SimRun run(options);
  run.order("a", Json::object(), {"run.pause"});
  EXPECT_EQ(run.wait_for_outcome("a")["state"], "applied");
  const auto paused = [](const Json& status) { return status["state"] == "paused"; };
  EXPECT_FALSE(run.wait_for_status(paused).is_null());
  run.stop();
  EXPECT_EQ(run.record(1).end_step, run.record(0).end_step);
}

TEST(End, IsReachedByAllRanksWithTheSameVerdict) {
  auto options = ranks(3, microseconds(0));
  options.settings = {{"train.steps", std::int64_t{200}}};
  SimRun run(options);
  run.join();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(run.record(rank).end_step, 200);
    EXPECT_EQ(run.record(rank).ending.reason, "done");
    EXPECT_FALSE(run.record(rank).ending.resumable);
  }
  run.order("late", {{"log.every", 2}});
  EXPECT_THAT(error_of(run.wait_for_outcome("late")), HasSubstr("the run is ending"));
}

/// The end comes while orders are under way: each is applied by the end, on all ranks, or refused.
TEST(End, IsABoundaryForOrdersOnTheirWay) {
  int applied_in_all = 0;
  for (int round = 0; round < 20; ++round) {
    auto options = ranks(3, microseconds(20));
    options.settings = {{"train.steps", std::int64_t{120}}};
    options.world.seed = static_cast<std::uint64_t>(round);
    options.world.max_delay = microseconds(600);
    SimRun run(options);
    for (int i = 1; i <= 40; ++i) {
      run.order(std::to_string(i), {{"eval.batches", i}});
      sleep_for(microseconds(100));
    }
    run.join();
    std::size_t applied = 0;
    for (int i = 1; i <= 40; ++i) {
      const Json report = run.wait_for_outcome(std::to_string(i));
      ASSERT_FALSE(report.is_null()) << i;
      if (report["state"] == "applied")
        ++applied;
      else
        ASSERT_THAT(error_of(report), HasSubstr("the run is ending"));
    }
    applied_in_all += static_cast<int>(applied);
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(run.record(rank).changes.size(), applied) << round;
      ASSERT_EQ(run.record(rank).changes, run.record(0).changes) << round;
      ASSERT_EQ(run.record(rank).end_step, 120);
    }
  }
  EXPECT_GT(applied_in_all, 0);
}

TEST(End, IsMovedByAnOrderThatApplesThere) {
  for (int round = 0; round < 20; ++round) {
    auto options = ranks(2, microseconds(0));
    options.settings = {{"train.steps", std::int64_t{100}}};
    options.world.seed = static_cast<std::uint64_t>(round);
    options.world.max_delay = microseconds(200);
    SimRun run(options);
    run.order("a", {{"train.steps", 150}}, Json::array(), {{"at_step", 100}});
    const Json report = run.wait_for_outcome("a");
    run.join();
    const int end = report["state"] == "applied" ? 150 : 100;  // refused: it came after the end
    EXPECT_EQ(run.record(0).end_step, end) << report;
    EXPECT_EQ(run.record(1).end_step, end) << report;
  }
}

TEST(End, ByASignalIsAnOrderOnWhicheverRankItArrives) {
  auto options = ranks(3);
  SimRun run(options);
  run.wait_for_step(4);
  run.control(2).request_stop("signal", true);
  run.control(2).request_stop("signal again", true);
  run.join();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(run.record(rank).ending.reason, "signal");
    EXPECT_TRUE(run.record(rank).ending.resumable);
    EXPECT_TRUE(run.record(rank).ending.save);
    EXPECT_EQ(run.record(rank).end_step, run.record(0).end_step);
  }
}

TEST(End, AskedForCarriesTheNote) {
  SimRun run(ranks(2));
  run.order("a", Json::object(),
            {{{"action", "run.stop"}, {"arguments", {{"reason", "spike"}, {"save", false}}}}});
  run.join();
  EXPECT_EQ(run.record(1).ending.reason, "asked");
  EXPECT_EQ(run.record(1).ending.note, "spike");
  EXPECT_FALSE(run.record(1).ending.save);
}

TEST(End, ToBeStartedAgainIsSavedAndResumable) {
  SimRun run(ranks(2));
  run.order("a", Json::object(),
            {{{"action", "run.restart"}, {"arguments", {{"reason", "a longer timeout"}}}}});
  run.join();
  EXPECT_EQ(run.record(1).ending.reason, "restart");
  EXPECT_EQ(run.record(1).ending.note, "a longer timeout");
  EXPECT_TRUE(run.record(1).ending.save);
  EXPECT_TRUE(run.record(1).ending.resumable);
}

TEST(Status, NamesASilentRankAndWhatItWasDoing) {
  auto options = ranks(3);
  options.times.heartbeat = milliseconds(20);
  options.times.stalled = milliseconds(300);
  SimRun run(options);
  run.ledger(1).enqueue(entry(Collective::all_reduce, {nullptr, 1000, DataType::float32}, "gradients"));
  const auto collective = [](const Json& status) { return status["ranks"][1].contains("collective"); };
  ASSERT_FALSE(run.wait_for_status(collective).is_null());
  run.world().pause(1, SimWorld::Clock::now() + milliseconds(1200));
  const Json stalled = run.wait_for("rank", [](const Json& data) { return data["state"] == "stalled"; });
  EXPECT_EQ(stalled["rank"], 1);
  EXPECT_THAT(stalled["text"].get<std::string>(), HasSubstr("all_reduce #1"));
  const auto named = [](const Json& status) { return status["ranks"][1]["stalled"] == true; };
  const Json status = run.wait_for_status(named);
  ASSERT_FALSE(status.is_null());
  EXPECT_EQ(status["ranks"][0]["stalled"], false);
  EXPECT_THAT(status["notes"][0].get<std::string>(), HasSubstr("rank 1: step "));
  run.stop();
}

TEST(Messages, ThatCannotBeReadAreToldAndEndNothing) {
  SimRun run(ranks(2));
  run.wait_for_step(2);
  const Json unreadable = {{"t", "fenced"}, {"ticket", "three"}};
  run.world().channel(1)->send(0, std::make_shared<const std::vector<std::uint8_t>>(to_cbor(unreadable)));
  const Json warning = run.wait_for("warn", [](const Json& data) { return data["kind"] == "control"; });
  ASSERT_FALSE(warning.is_null());
  EXPECT_EQ(warning["text"], "control thread: rank 1 sent: field 'ticket' has to be a whole number");
  run.order("a", {{"log.every", 4}});
  EXPECT_EQ(run.wait_for_outcome("a")["state"], "applied");
  run.send({{"type", "ranks"}, {"query", "weather"}});
  const auto weather = [](const Json& data) {
    return data["text"] == "there is no question 'weather' to the ranks";
  };
  EXPECT_FALSE(run.wait_for("warn", weather).is_null());
  run.stop();
}

TEST(Status, CarriesTheLastMetrics) {
  auto options = ranks(1);
  options.times.heartbeat = milliseconds(10);
  SimRun run(options);
  run.control(0).gate().publish(
      LoggedMetrics{{{"train/loss", 2.5}, {"perf/step_ms", 4.0}, {"eval/loss", 2.0}}});
  run.control(0).gate().publish(LoggedMetrics{{{"train/loss", "@nan"}, {"eval/loss", 3.0}}});
  EXPECT_FALSE(run.wait_for("metrics", [](const Json& data) { return data["eval/loss"] == 3.0; }).is_null());
  const auto diverged = [](const Json& status) { return status["loss"] == "@nan" && status["eta_s"] > 0; };
  const Json status = run.wait_for_status(diverged);
  ASSERT_FALSE(status.is_null());
  EXPECT_EQ(status["eval_loss"], 3.0);
  run.stop();
}

TEST(StateHash, OfAnOddRankIsNamed) {
  SimRun run(ranks(3));
  for (int rank = 0; rank < 3; ++rank) {
    run.control(rank).gate().report({100, 7});
    run.control(rank).gate().report({200, rank == 1 ? 8U : 7U});
  }
  const Json warning = run.wait_for("warn", [](const Json& data) { return data["kind"] == "state_hash"; });
  EXPECT_EQ(warning["step"], 200);
  EXPECT_EQ(warning["ranks"], Json({1}));
  run.stop();
  EXPECT_EQ(run.reports("warn").size(), 1U);
}

}  // namespace
}  // namespace footplate::testing
