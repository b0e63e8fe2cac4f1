#include "console/launch/run_dir/order_history.h"

#include <algorithm>
#include <optional>
#include <string>

#include "console/launch/run_dir/missing_result.h"
#include "protocol/gone_settings.h"
#include "run_files/file_names.h"
#include "run_files/journaled_orders.h"
#include "run_files/result_file.h"
#include "run_files/starts.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// Whether it acts on what is trained. Footplate's own actions leave that as it is.
bool changes_state(const Call& call) {
  return call.action.starts_with("task.");
}

/// What decides about the state: changes of settings and the task's own actions. What was called otherwise
/// was done, and is not done again.
Order changes_of(Order order) {
  std::erase_if(order.calls, [](const Call& call) { return !changes_state(call); });
  return order;
}

/// ckpt.load left behind what came after the checkpoint: for good. A crash did not mean to.
void go_back(History& history, const StartRecord& start) {
  std::vector<AppliedAt> applied;
  for (const Order& order : history.applied) applied.push_back({order.id, *order.at_step});
  const std::size_t held = held_by_checkpoint(applied, start.journal, start.step);
  // Held with a later step: ranks went back to that checkpoint, and saved it again.
  for (std::size_t i = 0; i < held; ++i)
    history.applied[i].at_step = std::min(*history.applied[i].at_step, start.step);
  if (start.loaded) {
    std::erase_if(history.gone,
                  [&](const GoneChange& one) { return one.order == 0 && one.step > start.step; });
    history.ahead.clear();
    history.applied.resize(held);
    history.loaded = start.start;
    history.before_loaded = held;
    return;
  }
  std::vector<Order> again;
  for (std::size_t i = held; i < history.applied.size(); ++i)
    if (Order order = changes_of(history.applied[i]);
        order.id != 0 && !(order.changes.empty() && order.calls.empty()))
      again.push_back(std::move(order));
  again.insert(again.end(), history.ahead.begin(), history.ahead.end());
  history.ahead = std::move(again);
  history.applied.resize(held);
}

/// What a later start's command line or config set otherwise than the checkpoint had it.
std::optional<Order> given_by_start(const StartRecord& start, const Schema& schema,
                                    std::vector<GoneChange>& gone) {
  if (start.given.empty()) return std::nullopt;
  Order order;
  order.session = "start " + std::to_string(start.start);
  order.source = "-- given to " + order.session;
  order.at_step = start.step;
  for (const auto& [name, json] : start.given.items())
    if (is_gone(schema, name))
      gone.push_back({0, start.step, name, json});
    else if (auto value = schema.check(name, json))
      order.changes.push_back({name, *std::move(value), std::nullopt});
  return order;
}

/// Where ranks went back to a checkpoint in place, a later order may have an earlier step. Those before it
/// were in force there already.
void follow(History& history, const std::vector<Order>& orders) {
  for (const Order& order : orders) {
    std::erase_if(history.ahead, [&](const Order& again) { return again.id == order.id; });
    for (auto before = history.applied.rbegin();
         before != history.applied.rend() && before->at_step > order.at_step; ++before)
      before->at_step = order.at_step;
    history.applied.push_back(order);
  }
}

/// What a start ordered. A journal may have several parts of one start, some without an order.
void follow_parts(History& history, const std::vector<JournalPart>& journal, const StartRecord& start) {
  std::uint64_t newest = history.newest_order.empty() ? 0 : history.newest_order.rbegin()->second;
  for (const JournalPart& part : journal) {
    if (part.started != start.time) continue;
    follow(history, part.orders);
    for (const Order& order : part.orders)  // again, after a crash
      std::erase_if(history.gone, [&](const GoneChange& one) { return one.order == order.id; });
    history.gone.insert(history.gone.end(), part.gone.begin(), part.gone.end());
    for (const Order& order : part.orders) newest = std::max(newest, order.id);
  }
  history.newest_order[start.start] = newest;
}

std::vector<std::uint64_t> ids_in(const OrdersFile& file, bool left_out) {
  std::vector<std::uint64_t> ids;
  for (const OrderAhead& one : file.orders)
    if (one.left_out == left_out) ids.push_back(one.order.id);
  return ids;
}

bool contains(const std::vector<std::uint64_t>& ids, std::uint64_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

/// A failure, or an end that nobody could write down.
bool failed(const fs::path& directory, int start) {
  const auto result = read_result_file(earlier_result_path(directory, start));
  return !result || is_worth_restarting(*result);
}

/// What start `previous` had left out, and the last order that it applied again before it failed.
std::vector<std::uint64_t> left_out_after(const fs::path& directory, int previous, const History& history) {
  const auto file = read_orders_file(directory, previous);
  if (!file) return {};
  std::vector<std::uint64_t> left_out = ids_in(*file, true);
  const auto again = ids_in(*file, false);
  if (!failed(directory, previous)) return left_out;
  for (std::size_t i = history.applied.size(); i > history.before_last_start; --i)
    if (contains(again, history.applied[i - 1].id)) {
      left_out.push_back(history.applied[i - 1].id);
      break;
    }
  return left_out;
}

bool has_order(const std::vector<Order>& orders, std::uint64_t id) {
  return std::ranges::find(orders, id, &Order::id) != orders.end();
}

/// Of orders that are to apply again.
std::vector<std::string> lines_of_gone(const History& history) {
  std::vector<std::string> lines;
  for (const GoneChange& one : history.gone)
    if (has_order(history.ahead, one.order))
      lines.push_back("order " + std::to_string(one.order) + " for step " + std::to_string(one.step) +
                      " is applied again without " + change_text(one) +
                      ": the task doesn't declare that any more");
  return lines;
}

}  // namespace

Result<History> read_history(const fs::path& directory, const Schema& schema) {
  const auto journal = read_journal(directory / kJournalFile, schema);
  if (!journal) return tl::unexpected(journal.error());
  const auto starts = read_start_records(directory);
  if (!starts) return tl::unexpected(starts.error());
  History history;
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const StartRecord& start = (*starts)[i];
    if (i > 0) {
      go_back(history, start);
      if (auto given = given_by_start(start, schema, history.gone))
        history.applied.push_back(*std::move(given));
    }
    history.before_last_start = history.applied.size();
    follow_parts(history, *journal, start);
  }
  std::erase_if(history.gone, [&](const GoneChange& one) {
    return one.order != 0 && !has_order(history.applied, one.order) && !has_order(history.ahead, one.order);
  });
  return history;
}

std::string change_text(const GoneChange& gone) {
  if (!gone.value) return gone.name + "{…}";
  return gone.name + " = " + excerpt(gone.value->dump(-1, ' ', false, Json::error_handler_t::replace));
}

Result<void> write_orders_ahead(const fs::path& directory, int start, OrdersWhy why,
                                const std::vector<Order>& orders,
                                const std::vector<std::uint64_t>& left_out) {
  OrdersFile file{why, {}};
  for (const Order& order : orders) file.orders.push_back({order, contains(left_out, order.id)});
  return write_orders_file(directory, start, file);
}

/// Of the orders that still do something, as far as there is room: a job's whole script may be the source of
/// each of its orders, and every rank reads them all.
void keep_newest_sources(std::vector<Order>& orders) {
  constexpr std::size_t kRoom = std::size_t{8} << 20U;
  std::size_t used = 0;
  for (auto order = orders.rbegin(); order != orders.rend(); ++order) {
    used += order->source.size();
    if (used > kRoom || (order->changes.empty() && order->calls.empty())) order->source.clear();
  }
}

Result<std::vector<std::string>> schedule_again(const fs::path& directory, int start, const Schema& schema) {
  const auto history = read_history(directory, schema);
  if (!history) return tl::unexpected(history.error());
  std::vector<Order> orders;
  // Those that only called something as well, without their calls: the checkpoint's last order may be one.
  for (const Order& order : history->applied)
    if (order.id != 0) orders.push_back(changes_of(order));
  keep_newest_sources(orders);
  orders.insert(orders.end(), history->ahead.begin(), history->ahead.end());
  const std::vector<std::string> lines = lines_of_gone(*history);
  if (orders.empty()) return lines;
  return write_orders_ahead(directory, start, OrdersWhy::journal, orders,
                            left_out_after(directory, start - 1, *history))
      .map([&] { return lines; });
}

Value without_pause(const Value& nonfinite) {
  return nonfinite == Value(std::string("pause")) ? Value(std::string("skip")) : nonfinite;
}

std::vector<Order> orders_to_replay(const History& history) {
  std::uint64_t last_id = 0;
  for (const Order& order : history.applied) last_id = std::max(last_id, order.id);
  std::vector<Order> orders;
  for (std::size_t i = 0; i < history.applied.size(); ++i) {
    Order order = history.applied[i];
    const bool of_last_start = i >= history.before_last_start;
    for (Call& call : order.calls)
      if (call.action == "run.restart" || call.action == "ckpt.load") call = {"run.stop", Json::object()};
    std::erase_if(order.calls, [&](const Call& call) {
      return !changes_state(call) && !(of_last_start && call.action == "run.stop");
    });
    std::erase_if(order.changes, [](const Change& change) {
      return change.name == "run.time_limit" || change.name == "comm.auto";
    });
    for (Change& change : order.changes)
      if (change.name == "guard.nonfinite") change.value = without_pause(change.value);
    if (order.changes.empty() && order.calls.empty()) continue;
    if (order.id == 0) order.id = ++last_id;
    orders.push_back(std::move(order));
  }
  return orders;
}

}  // namespace footplate
