#pragma once

#include <vector>

#include "protocol/json.h"
#include "protocol/order.h"

namespace footplate {

/// An order of orders-K.json, or of a manifest's orders.
struct AheadOrder {
  Result<Order> order = Order{};  ///< an error: it is left out, and that is said
  bool left_out = false;          ///< marked as only reported
};
/// orders-K.json (docs/protocol.md, "Orders ahead").
struct AheadFile {
  bool replay = false;
  std::vector<AheadOrder> orders;
};
/// Error (usage): it is no list of orders.
Result<void> read_json(const Json& json, AheadFile& file);

/// Those of a manifest.
std::vector<AheadOrder> ahead_orders_from_json(const Json& list);

}  // namespace footplate
