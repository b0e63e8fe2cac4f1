#pragma once

#include <cstdint>
#include <vector>

#include "protocol/order.h"
#include "protocol/settings.h"
#include "runtime/watch/committed.h"

namespace footplate {

/// Where a rank stands: what is in force, and what will be, in the order it will come.
struct Forecast {
  Settings settings;
  std::vector<Committed> pending;  ///< by step, then as committed
  std::int64_t step = 0;           ///< that training is at
  bool stopping = false;
};

/// `order` with every value and argument checked against the schema and brought to its type. What
/// needs only the order itself: the same answer on every rank.
Result<Order> checked_order(const Schema& schema, Order order);

/// The settings after `order` on top of `now`: expectations met, combination possible.
Result<Settings> with_changes(const Schema& schema, const Settings& now, const Order& order);

/// What the settings will be once a checked `order` applies, given everything committed before it.
/// Refuses what its target, the state of the run, an expectation or a combination forbids, now or in
/// an order that comes after it.
Result<Settings> foresee(const Schema& schema, const Forecast& forecast, const Order& order);

/// Where the setting's value says it comes from: "order 12 (ann)".
std::string source_of(const Order& order);

/// Whether `order` calls `action`.
bool calls_action(const Order& order, std::string_view action);

/// Whether `action` ends this start of the run: run.stop, run.restart and ckpt.load do.
bool ends_start(std::string_view action);

}  // namespace footplate
