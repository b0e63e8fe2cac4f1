// What wakes a control thread and brings its messages, without threads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/comm/doorbell.h"
#include "runtime/comm/remote_bells.h"
#include "runtime/comm/sim/sim_world.h"
#include "runtime/comm/wake_event.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

TEST(SimChannelTest, KeepsTheOrderBetweenTwoRanksAndItsDelays) {
  Clock::time_point now{seconds(1000)};
  SimOptions options;
  options.seed = 3;
  options.max_delay = milliseconds(5);
  options.now = [&] { return now; };
  SimWorld world(2, options);
  auto from = world.channel(0);
  auto to = world.channel(1);
  for (std::uint8_t i = 0; i < 100; ++i)
    from->send(1, std::make_shared<const std::vector<std::uint8_t>>(1, i));
  now += milliseconds(2);
  int next = 0;
  while (auto message = to->poll()) EXPECT_THAT(message->bytes, ElementsAre(next++));
  EXPECT_LT(next, 100);
  now += milliseconds(5);
  while (auto message = to->poll()) EXPECT_THAT(message->bytes, ElementsAre(next++));
  EXPECT_EQ(next, 100);
}

constexpr std::uint32_t kLoopback = 127U << 24 | 1;
/// A network without hosts (RFC 5737): nothing that is sent there arrives.
constexpr std::uint32_t kNowhere = 192U << 24 | 0U << 16 | 2U << 8 | 1;

/// Two bells that know each other; the first of their addresses leads nowhere.
struct Bells {
  std::unique_ptr<RemoteBells> zero = RemoteBells::install(0, {kNowhere, kLoopback}).value();
  std::unique_ptr<RemoteBells> one = RemoteBells::install(1, {kNowhere, kLoopback}).value();
  Bells() {
    zero->know(1, one->card());
    one->know(0, zero->card());
  }
};

TEST(RemoteBellsTest, EachHasAPortOfTheRangeUntilNoneIsLeft) {
  constexpr PortRange kTwo{21711, 21712};
  const auto zero = RemoteBells::install(0, {kLoopback}, kTwo),
             one = RemoteBells::install(1, {kLoopback}, kTwo);
  ASSERT_TRUE(zero && one) << "something else of this machine has one of these ports";
  EXPECT_EQ((*zero)->card().port, 21711U);
  EXPECT_EQ((*one)->card().port, 21712U);
  EXPECT_FALSE(RemoteBells::install(2, {kLoopback}, kTwo));
}

TEST(RemoteBellsTest, AQuestionIsAnsweredAndProvesBothWays) {
  WakeEvent sleep;
  Bells bells;
  EXPECT_FALSE(bells.zero->hears(1));
  bells.zero->ask(1);
  ASSERT_TRUE(sleep.wait(seconds(5), -1, -1, bells.one->fd()).fd2);
  bells.one->take();
  EXPECT_TRUE(bells.one->hears(0));
  ASSERT_TRUE(sleep.wait(seconds(5), bells.zero->fd(), -1).fd0);
  bells.zero->take();
  EXPECT_TRUE(bells.zero->hears(1));
  bells.one->ring(0);
  EXPECT_TRUE(sleep.wait(seconds(5), bells.zero->fd(), -1).fd0);
  bells.zero->take();
  EXPECT_FALSE(sleep.wait(milliseconds(1), bells.zero->fd(), -1).fd0);
}

TEST(RemoteBellsTest, OnlyWhoHasTheTokenRings) {
  WakeEvent sleep;
  Bells bells;
  BellCard guessed = bells.one->card();
  ++guessed.token;
  bells.zero->know(1, guessed);
  bells.zero->ring(1);
  ASSERT_TRUE(sleep.wait(seconds(5), bells.one->fd(), -1).fd0);
  bells.one->take();
  EXPECT_FALSE(bells.one->hears(0));
  const auto stranger = RemoteBells::install(7, {kLoopback}).value();
  stranger->know(1, bells.one->card());
  stranger->ring(1);
  ASSERT_TRUE(sleep.wait(seconds(5), bells.one->fd(), -1).fd0);
  bells.one->take();
  EXPECT_FALSE(bells.one->hears(7));
}

TEST(RemoteBellsTest, WhoCantBeRungIsLeftInPeace) {
  Bells bells;
  bells.zero->know(2, BellCard{});
  bells.zero->ring(2);
  bells.zero->ask(3);
  EXPECT_FALSE(bells.zero->hears(2));
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
