#include "runtime/orders/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

using std::chrono::milliseconds;

Published event(const std::string& topic, std::uint64_t hold = 0) {
  return {topic, Json::object(), {}, hold};
}

TEST(EventQueueTest, WakesForTheFirstUrgentEventAlone) {
  EventQueue events;
  EXPECT_FALSE(events.publish(event("metrics"))) << "nobody follows them";
  EXPECT_TRUE(events.publish(event("eval")));
  EXPECT_FALSE(events.publish(event("eval")));
  EXPECT_TRUE(events.publish(event("eval", 7))) << "training waits for this one";
  EXPECT_EQ(events.drain(SteadyClock::time_point(milliseconds(1000))).size(), 4U);
  EXPECT_TRUE(events.publish(event("eval")));
}

TEST(EventQueueTest, WakesForMetricsThatSomebodyFollows) {
  EventQueue events;
  events.set_followed(true);
  EXPECT_TRUE(events.publish(event("metrics")));
}

TEST(EventQueueTest, DoesNotWakeForEachEventOfAStream) {
  EventQueue events;
  SteadyClock::time_point now(milliseconds(1000));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(events.publish(event("eval")));
    events.drain(now);
    now += milliseconds(100);
  }
  EXPECT_TRUE(events.streaming());
  EXPECT_FALSE(events.publish(event("eval")));
  events.drain(now + milliseconds(300));
  EXPECT_FALSE(events.streaming());
  EXPECT_TRUE(events.publish(event("eval")));
}

TEST(EventQueueTest, CountsWhatFindsItFull) {
  EventQueue events;
  for (int i = 0; i < 5000; ++i)
    if (events.has_room()) events.publish(event("metrics"));
  const auto drained = events.drain(SteadyClock::time_point(milliseconds(1000)));
  ASSERT_EQ(drained.size(), 4097U);
  EXPECT_THAT(std::get<Published>(drained.back()).data["text"].get<std::string>(),
              ::testing::HasSubstr("904 events"));
  EXPECT_TRUE(events.has_room());
}

}  // namespace
}  // namespace footplate
