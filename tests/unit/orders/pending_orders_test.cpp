#include "runtime/orders/pending_orders.h"

#include <gtest/gtest.h>

#include "tests/unit/orders/committed_order.h"

namespace footplate {
namespace {

using testing::agreed;

/// The ids of what is taken at `step` one after the other.
std::vector<std::uint64_t> taken(PendingOrders& orders, std::int64_t step, bool standing) {
  std::vector<std::uint64_t> ids;
  while (const auto due = orders.take_due(step, standing)) ids.push_back(due->order.id);
  return ids;
}

TEST(PendingOrdersTest, GivesOrdersByStepAndThenAsCommitted) {
  PendingOrders orders;
  orders.commit(agreed(9, 5, true));
  orders.commit(agreed(3, 2, false));
  orders.commit(agreed(2, 2, false));
  EXPECT_EQ(orders.next_step(), 2);
  EXPECT_FALSE(orders.take_due(1, /*standing=*/false));
  EXPECT_EQ(taken(orders, 5, false), (std::vector<std::uint64_t>{3, 2, 9}));
  EXPECT_FALSE(orders.next_step());
  EXPECT_EQ(orders.commits(), 3U);
}

TEST(PendingOrdersTest, WhereTrainingStandsWhatHasNoTargetIsDue) {
  PendingOrders orders;
  orders.commit(agreed(1, 7, true));
  orders.commit(agreed(2, 8, false));
  EXPECT_EQ(taken(orders, 3, true), (std::vector<std::uint64_t>{2}));
}

TEST(PendingOrdersTest, PutsAnOrderBackInFrontOfThoseOfItsStep) {
  PendingOrders orders;
  orders.commit(agreed(1, 4, false));
  orders.commit(agreed(2, 4, false));
  const auto first = orders.take_due(4, false);
  orders.put_back(*first);
  EXPECT_EQ(taken(orders, 4, false), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(orders.commits(), 2U) << "it was heard of once";
}

TEST(PendingOrdersTest, WhatSomeMayHaveAppliedIsDueWhereTrainingGoesBackTo) {
  PendingOrders orders;
  orders.commit(agreed(1, 24, true));
  orders.commit(agreed(2, 30, true));
  orders.commit(agreed(3, 31, false));
  orders.commit(agreed(4, 31, true));
  orders.go_back(30, 20);
  EXPECT_EQ(taken(orders, 20, false), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(orders.next_step(), 31);
}

TEST(PendingOrdersTest, AWithdrawalIsACommitToo) {
  PendingOrders orders;
  orders.commit(agreed(1, 4, true));
  EXPECT_TRUE(orders.contains(1));
  orders.withdraw(1);
  EXPECT_FALSE(orders.contains(1));
  EXPECT_EQ(orders.commits(), 2U);
}

TEST(PendingOrdersTest, AnEndIsDueWhereItHasNoTarget) {
  PendingOrders orders;
  orders.commit(agreed(1, 4, true, {{"run.stop", Json::object()}}));
  EXPECT_FALSE(orders.end_is_due());
  orders.commit(agreed(2, 4, false, {{"run.pause", Json::object()}}));
  EXPECT_FALSE(orders.end_is_due());
  orders.commit(agreed(3, 4, false, {{"run.restart", Json::object()}}));
  EXPECT_TRUE(orders.end_is_due());
}

}  // namespace
}  // namespace footplate
