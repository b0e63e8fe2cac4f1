#include "runtime/rank/orders_ahead.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "run_files/journaled_orders.h"
#include "run_files/orders_file.h"
#include "runtime/rank/ahead_orders_json.h"

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
std::vector<AppliedAt> places_in(const std::vector<AheadOrder>& list) {
  std::vector<AppliedAt> places;
  for (const AheadOrder& item : list)
    places.push_back(item.order ? AppliedAt{item.order->id, item.order->at_step.value_or(0)} : AppliedAt{});
  return places;
}

/// One that can't be read may, as far as is known.
bool does_something(const AheadOrder& item) {
  return !item.order || !item.order->changes.empty() || !item.order->calls.empty();
}

Result<AheadFile> read_file(const std::filesystem::path& path) {
  AheadFile file;
  const auto json = read_orders_json(path);
  if (!json) return fail(ErrorKind::usage, json.error().message);
  if (read_json(*json, file)) return file;
  return fail(ErrorKind::usage, "can't read " + path.string() + ": it is no list of orders");
}

/// Adds one, checked; what it is, for people. Nothing: it was left out, and that is said.
std::optional<std::string> add(OrdersAhead& ahead, const Result<Order>& given, const Schema& schema,
                               const char* from) {
  auto order = given.and_then([&](Order one) { return checked_order(schema, std::move(one)); });
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

/// From `order`, which the run has passed before: what was set then is set again, what was called isn't.
void take_calls(OrdersAhead& ahead, Order& order) {
  std::string called;
  for (const Call& call : std::exchange(order.calls, {}))
    called += (called.empty() ? "" : ", ") + call.action;
  if (!called.empty())
    ahead.said.push_back(
        fmt::format("not called again: {} of order {} for step {}, which came before ckpt.load", called,
                    order.id, order.at_step.value_or(0)));
}

/// Those of the checkpoint that the list of the journal doesn't tell of.
void add_kept(OrdersAhead& ahead, const Json& kept, const std::vector<AheadOrder>& list, const Schema& schema,
              std::int64_t left) {
  for (AheadOrder& item : ahead_orders_from_json(kept)) {
    if (item.order) {
      const bool known = std::any_of(list.begin(), list.end(), [&](const AheadOrder& other) {
        return other.order && other.order->id == item.order->id;
      });
      if (known || item.order->session.starts_with(kRulePrefix)) continue;
      if (item.order->at_step.value_or(0) <= left) take_calls(ahead, *item.order);
    }
    if (!does_something(item)) continue;
    if (const auto what = add(ahead, item.order, schema, "checkpoint"))
      ahead.said.push_back("scheduled again: " + *what);
  }
}

}  // namespace

Result<OrdersAhead> read_orders_ahead(const std::filesystem::path& path, const Schema& schema,
                                      const Json& kept, std::uint64_t held, std::int64_t step,
                                      std::int64_t left) {
  OrdersAhead ahead;
  std::error_code ignored;
  AheadFile file;
  if (std::filesystem::exists(path, ignored)) {
    auto given = read_file(path);
    if (!given) return tl::unexpected(given.error());
    file = *std::move(given);
  }
  for (std::size_t i = held_by_checkpoint(places_in(file.orders), held, step); i < file.orders.size(); ++i) {
    const AheadOrder& item = file.orders[i];
    if (!does_something(item)) continue;
    const auto what = add(ahead, item.order, schema, "journal");
    if (!what) continue;
    if (item.left_out) {
      ahead.said.push_back("left out, as the run failed twice after it: " + *what + "; set it again by hand");
      ahead.orders.pop_back();
    } else if (!file.replay) {
      ahead.said.push_back("scheduled again: " + *what);
    }
  }
  add_kept(ahead, kept, file.orders, schema, left);
  // Gate and coordinator want them by step; within one, as they were applied.
  std::stable_sort(ahead.orders.begin(), ahead.orders.end(),
                   [](const Committed& a, const Committed& b) { return a.step < b.step; });
  if (file.replay) ahead.said.push_back(fmt::format("replaying {} orders", ahead.orders.size()));
  return ahead;
}

}  // namespace footplate
