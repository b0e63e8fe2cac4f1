#include "runtime/orders/order_reports.h"

#include <utility>

namespace footplate {
namespace {

/// Of the reports that are kept, in bytes of JSON.
constexpr std::size_t kMostReportBytes = 4 << 20;

std::size_t bytes_of(const OrderReport& report) {
  return to_json(report).dump(-1, ' ', false, Json::error_handler_t::replace).size();
}

}  // namespace

void OrderReports::give_final(OrderReport report, const OrderEntry& entry) {
  if (report.state == OrderState::applied) report.order = entry.order;
  const std::size_t bytes = bytes_of(report);
  bytes_ += bytes;
  final_.push_back({report, bytes});
  while (final_.size() > most_ || (bytes_ > kMostReportBytes && final_.size() > 1)) {
    bytes_ -= final_.front().bytes;
    final_.pop_front();
  }
  tell_(std::move(report));
}

}  // namespace footplate
