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

TEST(ControlRequestsTest, LinesComeInTheirOrderOnce) {
  ControlRequests requests;
  requests.add_line(1);
  requests.add_line(2);
  EXPECT_EQ(requests.take_lines(), (std::vector<Json>{1, 2}));
  EXPECT_TRUE(requests.take_lines().empty());
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
