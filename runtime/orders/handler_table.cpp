#include "runtime/orders/handler_table.h"

#include <iterator>
#include <utility>

namespace footplate {

HandlerTable::HandlerTable(std::vector<Steerable*> handlers) : handlers_(std::move(handlers)) {
  for (Steerable* handler : handlers_)
    for (const std::string_view action : handler->actions()) by_action_.emplace(action, handler);
}

Result<void> HandlerTable::prepare(const Order& order, const Settings& after) {
  for (Steerable* handler : handlers_)
    if (auto possible = handler->prepare(order, after); !possible) return possible;
  return {};
}

Result<std::optional<double>> HandlerTable::renew(const Settings& after, Renewal what, std::int64_t step) {
  std::optional<double> seconds;
  for (Steerable* handler : handlers_) {
    const auto renewed = handler->renew(after, what, step);
    if (!renewed) return renewed;
    if (*renewed) seconds = *renewed;
  }
  return seconds;
}

std::vector<std::string> HandlerTable::settle(const Settings& before, Settings& after) {
  std::vector<std::string> names;
  for (Steerable* handler : handlers_) {
    auto also = handler->settle(before, after);
    std::move(also.begin(), also.end(), std::back_inserter(names));
  }
  return names;
}

std::vector<Moved> HandlerTable::settings_changed(const Settings& now, std::int64_t step) {
  std::vector<Moved> moved;
  for (Steerable* handler : handlers_) {
    auto also = handler->settings_changed(now, step);
    std::move(also.begin(), also.end(), std::back_inserter(moved));
  }
  return moved;
}

Result<CallResult> HandlerTable::call(const Call& call, std::int64_t step) {
  const auto handler = by_action_.find(call.action);
  if (handler == by_action_.end()) return Steerable::call(call, step);
  return handler->second->call(call, step);
}

HeldShare HandlerTable::held_share() const {
  for (const Steerable* handler : handlers_)
    if (const HeldShare held = handler->held_share(); held.shared) return held;
  return {};
}

void HandlerTable::stand(bool whole) {
  for (Steerable* handler : handlers_) handler->stand(whole);
}

Result<void> HandlerTable::rejoin(const Rejoin& rejoin) {
  return last_first([&](Steerable& handler) { return handler.rejoin(rejoin); });
}

Result<void> HandlerTable::take_up(const Rejoin& rejoin) {
  return last_first([&](Steerable& handler) { return handler.take_up(rejoin); });
}

Result<void> HandlerTable::last_first(const std::function<Result<void>(Steerable&)>& part) {
  Result<void> all;
  for (auto handler = handlers_.rbegin(); handler != handlers_.rend(); ++handler) {
    auto its = part(**handler);
    if (all && !its) all = std::move(its);
  }
  return all;
}

}  // namespace footplate
