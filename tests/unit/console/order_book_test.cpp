#include "console/host/run/order_book.h"

#include <gtest/gtest.h>

namespace footplate::host {
namespace {

OrderReport report_of(std::uint64_t id, OrderState state) {
  OrderReport report;
  report.id = id;
  report.state = state;
  report.order = Order();
  report.order->source = "order " + std::to_string(id);
  return report;
}

TEST(OrderBook, AnOldOrderThatBecomesFinalIsThereForWhoeverHearsOfIt) {
  OrderBook book;
  book.report(report_of(1, OrderState::committed));  // of a later step
  for (std::uint64_t id = 2; id < 1500; ++id) book.report(report_of(id, OrderState::applied));
  const OrderBook::Entry& entry = book.report(report_of(1, OrderState::applied));
  EXPECT_EQ(entry.id, 1U);
  EXPECT_EQ(entry.report.order->source, "order 1");
  ASSERT_NE(book.find(1, ""), nullptr);
  EXPECT_EQ(book.find(400, ""), nullptr) << "the last thousand are kept";
  ASSERT_NE(book.find(600, ""), nullptr);
  book.report(report_of(1500, OrderState::applied));
  EXPECT_EQ(book.find(1, ""), nullptr) << "it is final, and the oldest";
}

}  // namespace
}  // namespace footplate::host
