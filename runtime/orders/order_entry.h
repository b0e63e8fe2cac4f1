#pragma once

#include <cstdint>

#include "protocol/order.h"

namespace footplate {

/// An order on its way through rank 0.
struct OrderEntry {
  Order order;
  Json ref = "";                ///< comes back with every report of it
  std::uint64_t withdraws = 0;  ///< not an order but the withdrawing of this one
};

/// The start of every report of it (docs/protocol.md, `order`).
inline Json report_of(const OrderEntry& entry, const char* state) {
  return {{"state", state}, {"id", entry.order.id}, {"ref", entry.ref}};
}

}  // namespace footplate
