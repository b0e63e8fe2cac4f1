#include "runtime/control/control_requests.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace footplate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ControlRequestsTest, TheFirstStopCountsAndIsToldOnce) {
  ControlRequests requests;
  EXPECT_FALSE(requests.take_stop());
  EXPECT_TRUE(requests.request_stop("SIGTERM", true));
  EXPECT_FALSE(requests.request_stop("SIGINT", false));
  const auto stop = requests.take_stop();
  ASSERT_TRUE(stop);
  EXPECT_EQ(std::string(stop->reason), "SIGTERM");
  EXPECT_TRUE(stop->resumable);
  EXPECT_FALSE(requests.take_stop());
  requests.tell_stop_again();
  EXPECT_TRUE(requests.take_stop());
}

TEST(ControlRequestsTest, MessagesComeInTheirOrderOnce) {
  ControlRequests requests;
  requests.add_message(AskStatus());
  requests.add_message(ReleaseHold{2});
  const auto messages = requests.take_messages();
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<AskStatus>(messages[0]));
  EXPECT_EQ(std::get<ReleaseHold>(messages[1]).hold, 2U);
  EXPECT_TRUE(requests.take_messages().empty());
}

TEST(ControlRequestsTest, WaitsUntilItIsSettledAndNoLongerThanItsBound) {
  ControlRequests requests;
  requests.wait_settled(milliseconds(1), [] {});
  EXPECT_TRUE(requests.settle_wanted());
  std::thread control;
  requests.wait_settled(seconds(60), [&] { control = std::thread([&] { requests.settled(); }); });
  EXPECT_FALSE(requests.settle_wanted());
  control.join();
}

}  // namespace
}  // namespace footplate
