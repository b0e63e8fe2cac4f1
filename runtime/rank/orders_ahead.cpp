#include "runtime/rank/orders_ahead.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "run_files/journaled_orders.h"
#include "run_files/json_file.h"

namespace footplate {
namespace {

constexpr std::string_view kRulePrefix = "rule ";  ///< of a session: the run's own rules (docs/lua.md)

std::string changes_text(const Order& order) {
  std::string text;
  for (const auto& change : order.changes)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", change.name, display(change.value));
  for (const auto& call : order.calls) text += (text.empty() ? "" : ", ") + to_text(call);
  return text;
}

/// Of a list of orders, each with its step.
std::vector<AppliedAt> places_in(const Json& list) {
  std::vector<AppliedAt> places;
  for (const Json& item : list)
    places.push_back({item.value("id", std::uint64_t{0}), item.value("at_step", std::int64_t{0})});
  return places;
}

bool does_something(const Json& item) {
  return !item.value("changes", Json::array()).empty() || !item.value("calls", Json::array()).empty();
}

Result<Json> read_file(const std::filesystem::path& path) {
  auto json = read_json_file(path);
  if (json && json->is_object() && json->contains("orders") && (*json)["orders"].is_array()) return json;
  return fail(ErrorKind::usage, "can't read " + path.string() + ": it is no list of orders");
}

/// Adds one, checked; what it is, for people. Nothing: it was left out, and that is said.
std::optional<std::string> add(OrdersAhead& ahead, const Json& item, const Schema& schema, const char* from) {
  auto order =
      order_from_json(item).and_then([&](Order given) { return checked_order(schema, std::move(given)); });
  if (!order || !order->at_step) {
    ahead.said.push_back(fmt::format("an order of the {} is left out: {}", from,
                                     order ? "it has no step" : order.error().message));
    return std::nullopt;
  }
  ahead.last_id = std::max(ahead.last_id, order->id);
  std::string what =
      fmt::format("{} at step {}: {}", source_of(*order), *order->at_step, changes_text(*order));
  const std::int64_t at = *order->at_step;
  ahead.orders.push_back({*std::move(order), at, /*targeted=*/true});
  return what;
}

/// Of `item`, which the run has passed before: what was set then is set again, what was called isn't.
Json without_calls(OrdersAhead& ahead, Json item) {
  std::string called;
  for (const Json& call : item.value("calls", Json::array()))
    called += (called.empty() ? "" : ", ") + call.value("action", "");
  item["calls"] = Json::array();
  if (!called.empty())
    ahead.said.push_back(
        fmt::format("not called again: {} of order {} for step {}, which came before ckpt.load", called,
                    item.value("id", std::uint64_t{0}), item.value("at_step", std::int64_t{0})));
  return item;
}

/// Those of the checkpoint that the list of the journal doesn't tell of.
void add_kept(OrdersAhead& ahead, const Json& kept, const Json& list, const Schema& schema,
              std::int64_t left) {
  for (Json item : kept) {
    const auto id = item.value("id", std::uint64_t{0});
    const bool known = std::any_of(list.begin(), list.end(), [id](const Json& other) {
      return other.value("id", std::uint64_t{0}) == id;
    });
    if (known || item.value("session", "").starts_with(kRulePrefix)) continue;
    if (item.value("at_step", std::int64_t{0}) <= left) item = without_calls(ahead, std::move(item));
    if (!does_something(item)) continue;
    if (const auto what = add(ahead, item, schema, "checkpoint"))
      ahead.said.push_back("scheduled again: " + *what);
  }
}

}  // namespace

Result<OrdersAhead> read_orders_ahead(const std::filesystem::path& path, const Schema& schema,
                                      const Json& kept, std::uint64_t held, std::int64_t step,
                                      std::int64_t left) {
  OrdersAhead ahead;
  std::error_code ignored;
  Json file = {{"orders", Json::array()}};
  if (std::filesystem::exists(path, ignored)) {
    auto given = read_file(path);
    if (!given) return tl::unexpected(given.error());
    file = *std::move(given);
  }
  const bool replay = file.value("why", "") == "replay";
  const Json& list = file["orders"];
  for (std::size_t i = held_by_checkpoint(places_in(list), held, step); i < list.size(); ++i) {
    const Json& item = list[i];
    if (!does_something(item)) continue;
    const auto what = add(ahead, item, schema, "journal");
    if (!what) continue;
    if (item.value("left_out", false)) {
      ahead.said.push_back("left out, as the run failed twice after it: " + *what + "; set it again by hand");
      ahead.orders.pop_back();
    } else if (!replay) {
      ahead.said.push_back("scheduled again: " + *what);
    }
  }
  add_kept(ahead, kept, list, schema, left);
  // Gate and coordinator want them by step; within one, as they were applied.
  std::stable_sort(ahead.orders.begin(), ahead.orders.end(),
                   [](const Committed& a, const Committed& b) { return a.step < b.step; });
  if (replay) ahead.said.push_back(fmt::format("replaying {} orders", ahead.orders.size()));
  return ahead;
}

}  // namespace footplate
