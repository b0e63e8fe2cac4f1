#include "runtime/orders/order_reports.h"

#include <gtest/gtest.h>

#include <vector>

namespace footplate {
namespace {

TEST(OrderReportsTest, AnAppliedOrderIsInItsReport) {
  std::vector<Json> reported;
  OrderReports reports([&](const std::string&, const Json& data) { reported.push_back(data); }, 10);
  OrderEntry entry;
  entry.order.id = 4;
  reports.give_final(report_of(entry, "applied"), entry);
  EXPECT_EQ(reported.at(0)["order"]["id"], 4);
  reports.give_final(report_of(entry, "refused"), entry);
  EXPECT_FALSE(reported.at(1).contains("order"));
  EXPECT_EQ(reports.final_ones().size(), 2U);
}

TEST(OrderReportsTest, KeepsTheLastOnesByNumberAndByBytes) {
  OrderReports reports([](const std::string&, const Json&) {}, 3);
  OrderEntry entry;
  for (entry.order.id = 1; entry.order.id <= 5; ++entry.order.id)
    reports.give_final(report_of(entry, "aborted"), entry);
  ASSERT_EQ(reports.final_ones().size(), 3U);
  EXPECT_EQ(reports.final_ones().front()["id"], 3);
  Json large = report_of(entry, "refused");
  large["error"] = std::string(3 << 20, 'x');
  reports.give_final(large, entry);
  reports.give_final(large, entry);
  EXPECT_EQ(reports.final_ones().size(), 1U);
}

}  // namespace
}  // namespace footplate
