#include "protocol/event_line.h"

#include <gtest/gtest.h>

namespace footplate {
namespace {

std::string line(const EventData& data, std::int64_t steps = 0) {
  return event_line(data, steps).value_or("(none)");
}

std::string line(std::string_view topic, const Json& data) {
  return event_line(topic, data).value_or("(none)");
}

TEST(EventLine, AnOrderSaysWhoAndWhatItAskedFor) {
  OrderReport report;
  report.id = 6;
  report.state = OrderState::refused;
  report.error = "no";
  report.order.emplace();
  report.order->user = "ann";
  report.order->session = "rule 3";
  report.order->changes = {{"optim.betas", Value(std::vector<double>{0.9, 0.99}), std::nullopt},
                           {"sched.name", Value(std::string("linear")), std::nullopt}};
  report.order->calls = {{"ckpt.save", {{"tag", "x"}}}};
  EXPECT_EQ(
      line(report),
      "ann, rule 3: optim.betas -> {0.9, 0.99}, sched.name -> linear, ckpt.save{ tag = \"x\" } refused: no");
  report.state = OrderState::committed;
  EXPECT_EQ(line(report), "(none)");
}

TEST(EventLine, AnAppliedOrderSaysWhatItDid) {
  OrderReport report;
  report.id = 6;
  report.state = OrderState::applied;
  EXPECT_EQ(order_effect(report), "order 6");
  report.applied = Applied{6, 812, 2, 2, "ab", {{"optim.lr", Value(1e-3), Value(5e-4)}}, {}};
  EXPECT_EQ(line(report), "optim.lr 0.001 -> 5e-4, applied at step 812 on 2/2 ranks");
  report.error = "rank 1 has another digest";
  EXPECT_EQ(line(report),
            "optim.lr 0.001 -> 5e-4, applied at step 812 on 2/2 ranks · ALARM: rank 1 has another digest");
}

TEST(EventLine, WhatFailedSaysWhy) {
  EXPECT_EQ(line("eval", {{"step", 2}, {"failed", true}, {"reason", "rank 1: x"}}),
            "eval at step 2 failed: rank 1: x");
  EXPECT_EQ(line("eval", {{"step", 2}}), "eval at step 2 failed");
  EXPECT_EQ(line("ckpt", {{"step", 2}, {"reason", "disk full"}}), "checkpoint at step 2 failed: disk full");
  EXPECT_EQ(line("warn", {{"text", "x"}}), "warning: x");
}

TEST(EventLine, TheTimeThatIsLeftNeedsStepsAndAPace) {
  const LoggedMetrics data{{{"step", 100}, {"train/loss", 0.5}, {"perf/step_ms", 1000}}};
  EXPECT_EQ(line(data, 160), "step 100/160 · loss 0.5000 · 1000 ms/step · eta 1 min");
  EXPECT_EQ(line(data, 100), "step 100/100 · loss 0.5000 · 1000 ms/step");
  EXPECT_EQ(line(data), "step 100 · loss 0.5000 · 1000 ms/step");
}

TEST(EventLine, Topics) {
  EXPECT_EQ(line("nccl", {{"steps", 10}, {"step", 50}, {"step_ms", 12.34567}}),
            "nccl: measured 10 steps before step 50 · 12.35 ms/step");
  EXPECT_EQ(line("profile",
                 {{"first", 5}, {"steps", 1}, {"recorded", 1}, {"path", "/x"}, {"lost_collectives", 76}}),
            "profile of steps 5 to 5 · 76 collectives are missing: a step has too many · /x");
  EXPECT_EQ(line("later", {{"text", "x"}}), "(none)");
  EXPECT_EQ(line("warn", {{"text", 5}}), "(none)");
  EXPECT_EQ(line("warn", Json::array()), "(none)");
}

}  // namespace
}  // namespace footplate
