#include "run_files/orders_file.h"

#include "protocol/json_fields.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"

namespace footplate {

Json to_json(const OrdersFile& file) {
  Json list = Json::array();
  for (const OrderAhead& one : file.orders) {
    list.push_back(to_json(one.order));
    if (one.left_out) list.back()["left_out"] = true;
  }
  return {{"why", to_string(file.why)}, {"orders", std::move(list)}};
}

Result<Json> read_orders_json(const std::filesystem::path& path) {
  constexpr std::size_t kLargest = std::size_t{512} << 20U;  // of a million orders
  return read_json_file(path, kLargest);
}

std::optional<OrdersFile> read_orders_file(const std::filesystem::path& run_directory, int start) {
  const auto json = read_orders_json(orders_path(run_directory, start));
  if (!json || !json->is_object()) return std::nullopt;
  OrdersFile file;
  file.why = from_word<OrdersWhy>(text_of(*json, "why")).value_or(OrdersWhy::journal);
  const auto orders = json->find("orders");
  if (orders == json->end() || !orders->is_array()) return file;
  for (const Json& one : *orders)
    if (auto order = order_from_json(one))
      file.orders.push_back({*std::move(order), flag_of(one, "left_out")});
  return file;
}

Result<void> write_orders_file(const std::filesystem::path& run_directory, int start,
                               const OrdersFile& file) {
  return write_text_file(orders_path(run_directory, start), to_line(to_json(file)));
}

}  // namespace footplate
