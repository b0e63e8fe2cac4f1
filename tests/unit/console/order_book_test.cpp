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

/// However many have come and gone meanwhile, as of rules that keep something at each line.
TEST(OrderBook, ACallThatRunsIsNotForgotten) {
  OrderBook book;
  const auto call = [&](std::uint64_t order, CallState state) {
    CallReport report;
    report.order = order;
    report.state = state;
    book.call_report(report);
  };
  call(1, CallState::running);
  for (std::uint64_t order = 2; order < 1500; ++order) call(order, CallState::done);
  ASSERT_NE(book.call(1, 0), nullptr);
  EXPECT_EQ(book.call(400, 0), nullptr) << "the last thousand are kept";
  call(1, CallState::done);
  call(1500, CallState::done);
  EXPECT_EQ(book.call(1, 0), nullptr);
}

}  // namespace
}  // namespace footplate::host
