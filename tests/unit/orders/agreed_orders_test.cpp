#include "runtime/orders/agreed_orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/schema/schema_table.h"
#include "tests/unit/orders/as_json.h"
#include "tests/unit/orders/committed_order.h"

namespace footplate {
namespace {

using std::chrono::seconds;
using testing::agreed;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const SteadyClock::time_point kAgreed{seconds(1000)};

class AgreedOrdersTest : public ::testing::Test {
 protected:
  void add(std::uint64_t id, std::int64_t step, bool targeted, std::vector<Call> calls = {}) {
    orders_.add({agreed(id, step, targeted, std::move(calls)).order}, step, targeted, kAgreed);
  }
  std::optional<AgreedOrder> confirm(int rank, std::uint64_t id, const std::string& digest = "d",
                                     const Json& more = Json::object()) {
    Json message = {{"order", id}, {"step", 5}, {"digest", digest}};
    message.update(more);
    message["t"] = "applied";
    return orders_.confirm(rank, std::get<message::Applied>(testing::to_rank_zero(message)), kAgreed);
  }

  AgreedOrders orders_{2, {}};
};

TEST_F(AgreedOrdersTest, AnOrderLeavesOnceAllHaveConfirmedIt) {
  add(3, 5, false);
  EXPECT_FALSE(confirm(1, 3));
  EXPECT_THAT(orders_.find(3)->unconfirmed(), ElementsAre(0));
  EXPECT_FALSE(confirm(1, 4)) << "there is no such order";
  const auto complete =
      confirm(0, 3, "d", {{"moved", {{{"name", "eval.batches"}, {"before", 2}, {"after", 3}}}}});
  ASSERT_TRUE(complete);
  EXPECT_EQ(orders_.find(3), nullptr);
  const SettingNow changed = complete->changed_settings(runtime_schema()).settings.at("eval.batches");
  EXPECT_EQ(changed.value, 3);
  EXPECT_EQ(changed.source, "order 3");
  const Json report = to_json(complete->applied_report());
  EXPECT_EQ(report["applied"]["ranks"], 2);
  EXPECT_EQ(report["applied"]["step"], 5);
  EXPECT_FALSE(report.contains("error"));
  EXPECT_FALSE(report["applied"].contains("renewed_s"));
}

TEST_F(AgreedOrdersTest, CallsOfAnOrderAheadCanBeCancelled) {
  orders_.take_over(agreed(3, 50, true, {{"eval.now", Json::object()}}));
  EXPECT_TRUE(orders_.has_call(3, 0));
}

TEST_F(AgreedOrdersTest, WhereTrainingWentBackRanksMayHaveAppliedItAtTwoSteps) {
  add(3, 5, false);
  add(8, 5, true);
  add(9, 6, true);
  orders_.go_back(5, 2);
  EXPECT_EQ(orders_.floor(), 2) << "the next order applies before step 5";
  EXPECT_EQ(orders_.find(3)->step, 2);
  EXPECT_EQ(orders_.find(8)->step, 2) << "it can't be withdrawn any more";
  EXPECT_EQ(orders_.find(9)->step, 6);
  confirm(0, 3);
  EXPECT_THAT(confirm(1, 3, "d", {{"step", 2}})->odd_ranks(), IsEmpty());
  add(4, 5, false);
  confirm(0, 4);
  EXPECT_THAT(confirm(1, 4, "d", {{"step", 2}})->odd_ranks(), ElementsAre(1)) << "agreed on later";
}

TEST_F(AgreedOrdersTest, NamesTheRanksThatDifferFromRankZero) {
  add(3, 5, false);
  confirm(0, 3);
  const auto complete = confirm(1, 3, "other");
  EXPECT_THAT(complete->odd_ranks(), ElementsAre(1));
  EXPECT_EQ(complete->applied_report().applied->ranks, 1);
  EXPECT_THAT(complete->applied_report().error, HasSubstr("rank 1 differs from rank 0"));
}

TEST_F(AgreedOrdersTest, TheFloorIsTheStepOfTheLastOrderWithoutATarget) {
  add(1, 5, false);
  add(2, 90, true);
  EXPECT_EQ(orders_.floor(), 5);
  orders_.inherit(agreed(3, 4, false));
  EXPECT_EQ(orders_.floor(), 5);
  orders_.inherit(agreed(4, 8, false));
  EXPECT_EQ(orders_.floor(), 8);
}

TEST_F(AgreedOrdersTest, KnowsTheCallsThatHaveNoResult) {
  add(1, 5, false, {{"run.pause", Json::object()}, {"eval.now", Json::object()}});
  orders_.inherit(agreed(2, 5, false, {{"eval.now", Json::object()}}));
  EXPECT_TRUE(orders_.has_call(1, 1) && orders_.has_call(2, 0));
  EXPECT_FALSE(orders_.has_call(1, 2));
  orders_.end_call(1, 0);
  EXPECT_FALSE(orders_.has_call(1, 0));
  orders_.end_calls(agreed(2, 5, false, {{"eval.now", Json::object()}}).order);
  EXPECT_FALSE(orders_.has_call(2, 0));
  EXPECT_TRUE(orders_.has_call(1, 1));
}

TEST_F(AgreedOrdersTest, CountsWhatPeopleHaveGiven) {
  add(1, 5, true);
  orders_.take_over(agreed(2, 5, true));
  EXPECT_EQ(orders_.count_given(), 1U);
  EXPECT_EQ(orders_.all().size(), 2U);
}

TEST_F(AgreedOrdersTest, SaysForWhomAnOrderWaitsOnceItsStepIsNear) {
  add(1, 5, true);
  add(2, 5, false);
  const auto later = kAgreed + ControlTimes{}.waiting;
  EXPECT_EQ(orders_.next_impatient(), later);
  EXPECT_THAT(orders_.take_impatient(later), ElementsAre(orders_.find(2)));
  EXPECT_THAT(orders_.take_impatient(later), IsEmpty());
  confirm(1, 1);
  EXPECT_THAT(orders_.take_impatient(later), ElementsAre(orders_.find(1)));
}

TEST_F(AgreedOrdersTest, ANewWorldConfirmsAgain) {
  add(1, 5, false);
  confirm(0, 1);
  orders_.go_on(3, kAgreed);
  EXPECT_THAT(orders_.find(1)->unconfirmed(), ElementsAre(0, 1, 2));
}

TEST_F(AgreedOrdersTest, ARankThatConfirmsTwiceIsOneRank) {
  add(1, 5, false);
  EXPECT_FALSE(confirm(1, 1, "early"));
  EXPECT_FALSE(confirm(1, 1, "d")) << "its last word counts";
  EXPECT_THAT(orders_.find(1)->unconfirmed(), ElementsAre(0));
  const auto complete = confirm(0, 1, "d");
  ASSERT_TRUE(complete);
  EXPECT_THAT(complete->odd_ranks(), IsEmpty());
  EXPECT_FALSE(confirm(1, 1)) << "too late: the order is gone";
}

TEST_F(AgreedOrdersTest, ASmallerWorldIsCompleteWithFewer) {
  orders_.go_on(3, kAgreed);
  add(1, 5, false);
  confirm(0, 1);
  confirm(1, 1);
  orders_.go_on(2, kAgreed);
  EXPECT_FALSE(confirm(1, 1)) << "what was said in the old world doesn't count";
  EXPECT_THAT(orders_.find(1)->unconfirmed(), ElementsAre(0));
  const auto complete = confirm(0, 1);
  ASSERT_TRUE(complete);
  EXPECT_EQ(complete->applied_report().applied->ranks, 2);
}

TEST_F(AgreedOrdersTest, WhatANewRankZeroInheritsIsConfirmedByTheNewWorld) {
  orders_.inherit(agreed(7, 5, false));
  orders_.go_on(1, kAgreed);
  EXPECT_THAT(orders_.find(7)->unconfirmed(), ElementsAre(0));
  EXPECT_TRUE(confirm(0, 7));
}

}  // namespace
}  // namespace footplate
