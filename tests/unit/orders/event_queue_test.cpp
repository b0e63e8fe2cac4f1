#include "runtime/orders/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

using std::chrono::milliseconds;

Published event(EventData data, std::uint64_t hold = 0) {
  return {std::move(data), {}, hold};
}

TEST(EventQueueTest, WakesForTheFirstUrgentEventAlone) {
  EventQueue events;
  EXPECT_FALSE(events.publish(event(LoggedMetrics()))) << "nobody follows them";
  EXPECT_TRUE(events.publish(event(EvaluationResult())));
  EXPECT_FALSE(events.publish(event(EvaluationResult())));
  EXPECT_TRUE(events.publish(event(EvaluationResult(), 7))) << "training waits for this one";
  EXPECT_EQ(events.drain(SteadyClock::time_point(milliseconds(1000))).size(), 4U);
  EXPECT_TRUE(events.publish(event(EvaluationResult())));
}

TEST(EventQueueTest, WakesForMetricsThatSomebodyFollows) {
  EventQueue events;
  events.set_followed(true);
  EXPECT_TRUE(events.publish(event(LoggedMetrics())));
}

TEST(EventQueueTest, DoesNotWakeForEachEventOfAStream) {
  EventQueue events;
  SteadyClock::time_point now(milliseconds(1000));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(events.publish(event(EvaluationResult())));
    events.drain(now);
    now += milliseconds(100);
  }
  EXPECT_TRUE(events.streaming());
  EXPECT_FALSE(events.publish(event(EvaluationResult())));
  events.drain(now + milliseconds(300));
  EXPECT_FALSE(events.streaming());
  EXPECT_TRUE(events.publish(event(EvaluationResult())));
}

TEST(EventQueueTest, CountsWhatFindsItFull) {
  EventQueue events;
  for (int i = 0; i < 5000; ++i)
    if (events.has_room()) events.publish(event(LoggedMetrics()));
  const auto drained = events.drain(SteadyClock::time_point(milliseconds(1000)));
  ASSERT_EQ(drained.size(), 4097U);
  EXPECT_THAT(std::get<Warning>(std::get<Published>(drained.back()).data).text,
              ::testing::HasSubstr("904 events"));
  EXPECT_TRUE(events.has_room());
}

}  // namespace
}  // namespace footplate
