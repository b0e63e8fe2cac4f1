#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "protocol/messages/enum_words.h"
#include "protocol/order.h"

namespace footplate {

/// What led to orders that a start commits before it trains.
enum class OrdersWhy { journal, replay };
template <>
struct EnumWords<OrdersWhy> {
  static constexpr std::array kAll{std::pair{OrdersWhy::journal, std::string_view("journal")},
                                   std::pair{OrdersWhy::replay, std::string_view("replay")}};
};

struct OrderAhead {
  Order order;
  bool left_out = false;  ///< only reported
};

/// orders-K.json (docs/protocol.md, "Orders ahead").
struct OrdersFile {
  OrdersWhy why = OrdersWhy::journal;
  std::vector<OrderAhead> orders;
};
Json to_json(const OrdersFile& file);

/// One of these, whatever is in it. Error (failed): as read_json_file; it may be large, as the journal may.
Result<Json> read_orders_json(const std::filesystem::path& path);

/// Of start `start`. Orders that can't be read are passed over. Nothing: no such file, or no object in it.
std::optional<OrdersFile> read_orders_file(const std::filesystem::path& run_directory, int start);

/// Errors: as write_json_file.
Result<void> write_orders_file(const std::filesystem::path& run_directory, int start, const OrdersFile& file);

}  // namespace footplate
