#pragma once

#include <cstdint>
#include <string>

#include "protocol/messages/order_report.h"

namespace footplate {

/// An order on its way through rank 0.
struct OrderEntry {
  Order order;
  std::string ref = {};         ///< comes back with every report of it
  std::uint64_t withdraws = 0;  ///< not an order but the withdrawing of this one
};

/// The start of every report of it (docs/protocol.md, `order`).
inline OrderReport report_of(const OrderEntry& entry, OrderState state) {
  OrderReport report;
  report.state = state;
  report.id = entry.order.id;
  report.ref = entry.ref;
  return report;
}

}  // namespace footplate
