#include "runtime/orders/forecast.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/schema/actions.h"

namespace footplate {
namespace {

/// Whether `earlier`, already committed, applies before `order` would.
bool comes_before(const Committed& earlier, const Order& order, const Forecast& forecast) {
  if (!earlier.targeted) return true;
  return earlier.step <= order.at_step.value_or(forecast.step + 1);
}

/// `earlier` as seen from `order`, which it comes before. Where it ends this start of the run, and has its
/// own step, an order for a later one may wait: the end says what becomes of it.
void follow(Forecast& forecast, const Committed& earlier, const Order& order) {
  const bool waits = earlier.targeted && order.at_step && earlier.step < *order.at_step;
  for (const auto& call : earlier.order.calls) {
    if (ends_start(call.action) && !waits) forecast.stopping = true;
  }
}

/// `before`: the order's own train.steps comes too late to prolong the run up to its step.
Result<void> check_target(const Settings& before, const Order& order) {
  if (!order.at_step || !before.has("train.steps")) return {};
  const std::int64_t steps = before.integer("train.steps");
  if (*order.at_step <= steps) return {};
  return fail(
      ErrorKind::refused,
      fmt::format("step {} lies past the end of the run (train.steps = {}); choose a step up to {}, or "
                  "raise train.steps first, in an order that applies now",
                  *order.at_step, steps, steps));
}

Settings with_values(const Settings& now, const Order& order) {
  Settings after = now;
  for (const auto& change : order.changes) after.set(change.name, change.value, source_of(order));
  return after;
}

/// Whether what is agreed for later stays possible. What isn't possible without `order` either, since
/// somebody has withdrawn what it was given after, is dropped at its step, and makes nothing else impossible.
Result<void> check_later(const Schema& schema, const Forecast& forecast, Settings without, Settings with,
                         const Order& order) {
  if (order.changes.empty()) return {};
  for (const auto& committed : forecast.pending) {
    if (comes_before(committed, order, forecast)) continue;
    Settings then = with_values(without, committed.order);
    if (!schema.check_combination(then)) continue;
    without = std::move(then);
    with = with_values(with, committed.order);
    if (auto possible = schema.check_combination(with); !possible)
      return fail(
          ErrorKind::refused,
          fmt::format("this would make order {}, due at step {}, impossible: {}; withdraw that one first",
                      committed.order.id, committed.step, possible.error().message));
  }
  return {};
}

}  // namespace

std::string source_of(const Order& order) {
  const std::string& who = order.user.empty() ? order.session : order.user;
  return who.empty() ? fmt::format("order {}", order.id) : fmt::format("order {} ({})", order.id, who);
}

bool calls_action(const Order& order, std::string_view action) {
  return std::any_of(order.calls.begin(), order.calls.end(),
                     [&](const Call& call) { return call.action == action; });
}

bool ends_start(std::string_view action) {
  return action == "run.stop" || action == "run.restart" || action == kLoad;
}

Result<Order> checked_order(const Schema& schema, Order order) {
  for (auto& change : order.changes) {
    auto value = schema.check_live(change.name, to_json(change.value));
    if (!value) return tl::unexpected(value.error());
    change.value = *std::move(value);
    if (!change.expect) continue;
    auto expect = schema.check(change.name, to_json(*change.expect));
    if (!expect) return tl::unexpected(expect.error());
    change.expect = *std::move(expect);
  }
  for (auto& call : order.calls) {
    auto arguments = schema.check_arguments(call.action, call.arguments);
    if (!arguments) return tl::unexpected(arguments.error());
    call.arguments = *std::move(arguments);
  }
  if (order.changes.empty() && order.calls.empty())
    return fail(ErrorKind::usage, "the order asks for nothing: it has neither changes nor calls");
  return order;
}

Result<Settings> with_changes(const Schema& schema, const Settings& now, const Order& order) {
  Settings after = now;
  for (const auto& change : order.changes) {
    if (change.expect && now.value(change.name) != *change.expect)
      return fail(
          ErrorKind::refused,
          fmt::format("{} was expected to be {} but is {} (from {}); look again, then repeat", change.name,
                      display(*change.expect), display(now.value(change.name)), now.source(change.name)));
    after.set(change.name, change.value, source_of(order));
  }
  if (auto possible = schema.check_combination(after); !possible) return tl::unexpected(possible.error());
  return after;
}

Result<Settings> foresee(const Schema& schema, const Forecast& forecast, const Order& order) {
  Forecast then = forecast;
  const auto apply = [&](const Committed& committed) {
    // One that has become impossible will be dropped at its step, so it is passed over here as well.
    if (auto after = with_changes(schema, then.settings, committed.order)) then.settings = *std::move(after);
    follow(then, committed, order);
  };
  for (const auto& committed : forecast.pending)
    if (comes_before(committed, order, forecast)) apply(committed);
  if (then.stopping && !order.calls.empty())
    return fail(ErrorKind::refused, "the run is stopping; it takes no more calls");
  auto after = with_changes(schema, then.settings, order);
  if (!after) return after;
  if (auto target = check_target(then.settings, order); !target) return tl::unexpected(target.error());

  if (auto later = check_later(schema, forecast, then.settings, *after, order); !later)
    return tl::unexpected(later.error());
  return after;
}

}  // namespace footplate
