// Orders that the run gives itself: it ends by a signal or a limit, or goes on with less memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/control/sim_run.h"

namespace footplate::testing {
namespace {

using std::chrono::milliseconds;

SimRun::Options two_ranks() {
  SimRun::Options options;
  options.ranks = 2;
  options.step_time = milliseconds(1);
  return options;
}

TEST(End, ByASignalIsTriedAgainWhereARankWasStuck) {
  auto options = two_ranks();
  options.times.outcome = milliseconds(100);
  options.times.stop_retry = milliseconds(20);
  SimRun run(options);
  run.wait_for_step(4);
  run.world().pause(1, SimWorld::Clock::now() + milliseconds(250));
  run.control(0).request_stop("signal", true);
  const auto aborted = [](const Json& report) { return report["state"] == "aborted"; };
  EXPECT_FALSE(run.wait_for("order", aborted).is_null());
  run.join();
  EXPECT_EQ(run.record(1).ending.reason, "signal");
}

/// Short of memory all have paused for it, and nobody else would give it again.
TEST(Order, ThatEndsAPauseOfTheRunsOwnIsGivenAgainWhereItWasAborted) {
  auto options = two_ranks();
  options.times.outcome = milliseconds(100);
  options.times.stop_retry = milliseconds(20);
  SimRun* running = nullptr;
  options.call = [&running](int rank, const Call&, std::int64_t, StepGate& gate) -> Result<CallResult> {
    gate.pause();  // at the same step, as where memory was short
    if (rank != 0) return CallResult();
    Order order;
    order.changes = {{"log.every", Value(std::int64_t{9}), std::nullopt}};
    order.calls = {{"run.resume", Json::object()}};
    running->world().pause(1, SimWorld::Clock::now() + milliseconds(250));
    gate.propose(order);
    return CallResult();
  };
  SimRun run(options);
  running = &run;
  run.order("a", Json::object(), {"eval.now"});
  const auto aborted = [](const Json& report) { return report["state"] == "aborted"; };
  const Json first = run.wait_for("order", aborted);
  ASSERT_FALSE(first.is_null());
  const auto again = [&](const Json& report) {
    return report["state"] == "applied" && report["id"] > first["id"];
  };
  ASSERT_FALSE(run.wait_for("order", again).is_null());
  run.wait_for_step(run.step(0) + 3);
  run.stop();
  EXPECT_EQ(run.record(1).changes.size(), 1U);
}

TEST(End, ByTheTimeLimitIsResumable) {
  auto options = two_ranks();
  options.settings = {{"run.time_limit", 0.15}};
  SimRun run(options);
  run.join();
  EXPECT_EQ(run.record(0).ending.reason, "time limit");
  EXPECT_TRUE(run.record(1).ending.resumable);
}

TEST(End, ByThePauseLimitIsSavedAndResumable) {
  auto options = two_ranks();
  options.settings = {{"run.pause_limit", 0.1}};
  SimRun run(options);
  run.order("a", Json::object(), {"run.pause"});
  run.join();
  EXPECT_EQ(run.record(0).ending.reason, "pause limit");
  EXPECT_TRUE(run.record(1).ending.resumable);
  EXPECT_TRUE(run.record(1).ending.save);
}

}  // namespace
}  // namespace footplate::testing
