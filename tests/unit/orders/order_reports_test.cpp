#include "runtime/orders/order_reports.h"

#include <gtest/gtest.h>

#include <vector>

namespace footplate {
namespace {

TEST(OrderReportsTest, AnAppliedOrderIsInItsReport) {
  std::vector<OrderReport> reported;
  OrderReports reports([&](const OrderReport& report) { reported.push_back(report); }, 10);
  OrderEntry entry;
  entry.order.id = 4;
  reports.give_final(report_of(entry, OrderState::applied), entry);
  EXPECT_EQ(reported.at(0).order.value().id, 4U);
  reports.give_final(report_of(entry, OrderState::refused), entry);
  EXPECT_FALSE(reported.at(1).order);
  EXPECT_EQ(reports.final_ones().size(), 2U);
}

TEST(OrderReportsTest, KeepsTheLastOnesByNumberAndByBytes) {
  OrderReports reports([](const OrderReport&) {}, 3);
  OrderEntry entry;
  for (entry.order.id = 1; entry.order.id <= 5; ++entry.order.id)
    reports.give_final(report_of(entry, OrderState::aborted), entry);
  ASSERT_EQ(reports.final_ones().size(), 3U);
  EXPECT_EQ(reports.final_ones().front().report.id, 3U);
  OrderReport large = report_of(entry, OrderState::refused);
  large.error = std::string(3 << 20, 'x');
  reports.give_final(large, entry);
  reports.give_final(large, entry);
  EXPECT_EQ(reports.final_ones().size(), 1U);
}

}  // namespace
}  // namespace footplate
