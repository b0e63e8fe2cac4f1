#include "runtime/orders/open_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const SteadyClock::time_point kOpened{seconds(1000)};

OpenRound round_of(OrderEntry entry) {
  return OpenRound(std::move(entry), 7, 2, kOpened, {});
}

TEST(OpenRoundTest, AsksTwiceAndTakesTheLatestFence) {
  OpenRound round = round_of({});
  EXPECT_THAT(round.unanswered(), ElementsAre(0, 1));
  EXPECT_FALSE(round.add_prepared(1));
  EXPECT_THAT(round.unanswered(), ElementsAre(0));
  EXPECT_TRUE(round.add_prepared(0));
  EXPECT_FALSE(round.is_fencing());
  round.start_fencing();
  EXPECT_TRUE(round.is_fencing());
  EXPECT_THAT(round.unanswered(), ElementsAre(0, 1));
  EXPECT_FALSE(round.add_fence(0, 14));
  EXPECT_TRUE(round.add_fence(1, 11));
  EXPECT_THAT(round.unanswered(), IsEmpty());
  EXPECT_EQ(round.first_step(3), 14);
  EXPECT_EQ(round.first_step(20), 20);
}

TEST(OpenRoundTest, ARankThatAnswersTwiceIsOneRank) {
  OpenRound round = round_of({});
  EXPECT_FALSE(round.add_prepared(1));
  EXPECT_FALSE(round.add_prepared(1));
  EXPECT_THAT(round.unanswered(), ElementsAre(0));
  EXPECT_TRUE(round.add_prepared(0));
  round.start_fencing();
  EXPECT_FALSE(round.add_fence(0, 20));
  EXPECT_FALSE(round.add_fence(0, 12)) << "its last word counts";
  EXPECT_THAT(round.unanswered(), ElementsAre(1));
  EXPECT_TRUE(round.add_fence(1, 11));
  EXPECT_EQ(round.first_step(3), 12);
}

TEST(OpenRoundTest, AsksAboutAnOrderOrItsWithdrawal) {
  OrderEntry order;
  order.order.id = 12;
  EXPECT_EQ(to_json(round_of(order).question())["order"]["id"], 12);
  OrderEntry withdrawal;
  withdrawal.withdraws = 5;
  EXPECT_EQ(to_json(round_of(withdrawal).question()),
            (Json{{"t", "prepare"}, {"ticket", 7}, {"withdraws", 5}}));
}

TEST(OrderPatienceTest, WaitsTwiceAsLongEachTimeUpToItsBound) {
  ControlTimes times;
  times.waiting = milliseconds(10);
  times.waiting_most = milliseconds(30);
  OrderPatience patience(kOpened, times);
  EXPECT_FALSE(patience.is_over(kOpened + milliseconds(9)));
  auto now = kOpened + milliseconds(10);
  for (const int next : {20, 30, 30}) {
    EXPECT_TRUE(patience.is_over(now));
    EXPECT_EQ(patience.next(), now + milliseconds(next));
    now = patience.next();
  }
}

}  // namespace
}  // namespace footplate
