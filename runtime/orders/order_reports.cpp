#include "runtime/orders/order_reports.h"

#include <utility>

namespace footplate {
namespace {

/// Of the reports that are kept, in bytes of JSON.
constexpr std::size_t kMostReportBytes = 4 << 20;

std::size_t bytes_of(const Json& report) {
  return report.dump(-1, ' ', false, Json::error_handler_t::replace).size();
}

}  // namespace

void OrderReports::give_final(Json report, const OrderEntry& entry) {
  if (report["state"] == "applied") report["order"] = to_json(entry.order);
  bytes_ += bytes_of(report);
  final_.push_back(report);
  while (final_.size() > most_ || (bytes_ > kMostReportBytes && final_.size() > 1)) {
    bytes_ -= bytes_of(final_.front());
    final_.pop_front();
  }
  report_("order", std::move(report));
}

}  // namespace footplate
