#include "runtime/rank/ahead_orders_json.h"

#include <string>

#include "protocol/messages/fields.h"

namespace footplate {

std::vector<AheadOrder> ahead_orders_from_json(const Json& list) {
  std::vector<AheadOrder> orders;
  for (const Json& item : list) {
    AheadOrder order{order_from_json(item)};
    if (order.order) {
      FieldReader field(item);
      field("left_out", order.left_out);
    }
    orders.push_back(std::move(order));
  }
  return orders;
}

Result<void> read_json(const Json& json, AheadFile& file) {
  if (!json.is_object()) return fields::wrong("a list of orders");
  std::string why;
  Json orders;
  FieldReader field(json);
  field("why", why);
  field("orders", orders);
  if (auto read = field.take(); !read) return read;
  if (!orders.is_array()) return fields::wrong("a list of orders");
  file.replay = why == "replay";
  file.orders = ahead_orders_from_json(orders);
  return {};
}

}  // namespace footplate
