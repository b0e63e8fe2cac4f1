#include "runtime/orders/own_stop.h"

#include <gtest/gtest.h>

#include "protocol/own_session.h"

namespace footplate {
namespace {

using std::chrono::seconds;

const SteadyClock::time_point kAsked{seconds(1000)};

TEST(OwnStopTest, TheFirstRequestCounts) {
  OwnStop stop;
  EXPECT_FALSE(stop.is_requested() || stop.is_due(kAsked));
  EXPECT_TRUE(stop.request("time limit", true, true, kAsked));
  EXPECT_FALSE(stop.request("signal", false, false, kAsked));
  EXPECT_TRUE(stop.is_requested() && stop.is_due(kAsked));
  const Order order = stop.order(12);
  EXPECT_EQ(order.id, 12U);
  EXPECT_EQ(order.session, kOwnSession);
  EXPECT_EQ(order.calls.at(0).arguments,
            (Json{{"save", true}, {"resumable", true}, {"reason", "time limit"}}));
}

TEST(OwnStopTest, IsGivenAgainOnceItsOrderIsAborted) {
  OwnStop stop;
  stop.request("signal", true, true, kAsked);
  stop.order(12);
  EXPECT_FALSE(stop.is_due(kAsked + seconds(60))) << "it is on its way";
  stop.aborted(11, kAsked);
  EXPECT_FALSE(stop.is_due(kAsked + seconds(60))) << "another order";
  stop.aborted(12, kAsked + seconds(1));
  EXPECT_FALSE(stop.is_due(kAsked));
  EXPECT_EQ(stop.next_try(), kAsked + seconds(1));
  EXPECT_TRUE(stop.is_due(kAsked + seconds(1)));
}

}  // namespace
}  // namespace footplate
