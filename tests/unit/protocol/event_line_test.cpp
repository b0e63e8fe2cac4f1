#include "protocol/event_line.h"

#include <gtest/gtest.h>

namespace footplate {
namespace {

std::string line(std::string_view topic, const Json& data, std::int64_t steps = 0) {
  return event_line(topic, data, steps).value_or("(none)");
}

TEST(EventLine, AnOrderSaysWhoAndWhatItAskedFor) {
  const Json order = {{"user", "ann"},
                      {"session", "rule 3"},
                      {"changes", {{{"name", "optim.betas"}, {"value", {0.9, 0.99}}}}},
                      {"calls", {{{"action", "ckpt.save"}, {"arguments", {{"tag", "x"}}}}}}};
  EXPECT_EQ(
      line("order", {{"id", 6}, {"state", "refused"}, {"order", order}, {"error", {{"message", "no"}}}}),
      "ann, rule 3: optim.betas -> {0.9, 0.99}, ckpt.save{ tag = \"x\" } refused: no");
  EXPECT_EQ(line("order", {{"id", 6}, {"state", "committed"}, {"order", order}}), "(none)");
}

TEST(EventLine, WhatFailedSaysWhy) {
  EXPECT_EQ(line("eval", {{"step", 2}, {"error", "rank 1: x"}}), "eval at step 2 failed: rank 1: x");
  EXPECT_EQ(line("eval", {{"step", 2}}), "eval at step 2 failed");
  EXPECT_EQ(line("ckpt", {{"step", 2}, {"reason", "disk full"}}), "checkpoint at step 2 failed: disk full");
  EXPECT_EQ(line("warn", {{"error", {{"message", "x"}}}}), "warning: x");
}

TEST(EventLine, TheTimeThatIsLeftNeedsStepsAndAPace) {
  const Json data = {{"step", 100}, {"train/loss", 0.5}, {"perf/step_ms", 1000}};
  EXPECT_EQ(line("metrics", data, 160), "step 100/160 · loss 0.5000 · 1000 ms/step · eta 1 min");
  EXPECT_EQ(line("metrics", data, 100), "step 100/100 · loss 0.5000 · 1000 ms/step");
  EXPECT_EQ(line("metrics", data), "step 100 · loss 0.5000 · 1000 ms/step");
}

TEST(EventLine, Topics) {
  EXPECT_EQ(line("nccl", {{"steps", 10}, {"step", 50}, {"step_ms", 12.34567}}),
            "nccl: measured 10 steps before step 50 · 12.35 ms/step");
  EXPECT_EQ(line("later", {{"text", "x"}}), "(none)");
  EXPECT_TRUE(is_known_topic("metrics"));
  EXPECT_TRUE(is_known_topic("end"));
  EXPECT_FALSE(is_known_topic("later"));
}

}  // namespace
}  // namespace footplate
