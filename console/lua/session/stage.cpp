#include "console/lua/session/stage.h"

#include <algorithm>

#include "protocol/store.h"

namespace footplate::lua {
namespace {

constexpr const char* kStoreAction = "run.store";

Change* find_change(Order& order, std::string_view name) {
  const auto found = std::find_if(order.changes.begin(), order.changes.end(),
                                  [&](const Change& change) { return change.name == name; });
  return found == order.changes.end() ? nullptr : &*found;
}

}  // namespace

std::optional<OrderState> StagedOrder::state() const {
  return dropped || !sent() ? std::nullopt : std::optional(report.state);
}

std::string StagedOrder::state_word() const {
  if (dropped) return "dropped";
  return sent() ? std::string(to_string(report.state)) : "staged";
}

const Value& Stage::value(std::string_view name) const {
  for (const auto* staged : {&at_, &main_})
    if (*staged != nullptr)
      if (const Change* change = find_change((*staged)->order, name)) return change->value;
  return settings_.value(name);
}

StagedOrder& Stage::target() {
  if (at_ != nullptr) return *at_;
  if (main_ == nullptr) main_ = std::make_shared<StagedOrder>();
  return *main_;
}

Result<void> Stage::assign(const std::string& name, const Json& value) {
  auto checked = schema_.check_live(name, value);
  if (!checked) return tl::unexpected(checked.error());
  Order& order = target().order;
  if (Change* change = find_change(order, name))
    change->value = *std::move(checked);
  else
    order.changes.push_back({name, *std::move(checked), std::nullopt});
  return {};
}

Result<void> Stage::expect(const std::string& name, const Json& value) {
  auto checked = schema_.check(name, value);
  if (!checked) return tl::unexpected(checked.error());
  Order& order = target().order;
  Change* change = find_change(order, name);
  if (change == nullptr)
    return fail(ErrorKind::usage, "expect names " + name + ", which this set{} doesn't change");
  change->expect = *std::move(checked);
  return {};
}

Result<std::pair<std::shared_ptr<StagedOrder>, int>> Stage::call(const std::string& action,
                                                                 const Json& arguments) {
  auto checked = schema_.check_arguments(action, arguments);
  if (!checked) return tl::unexpected(checked.error());
  Order& order = target().order;
  order.calls.push_back({action, *std::move(checked)});
  return std::pair(at_ != nullptr ? at_ : main_, static_cast<int>(order.calls.size()) - 1);
}

Result<void> Stage::store(const std::string& name, const std::string& text, bool keep) {
  for (Call& call : target().order.calls) {
    if (call.action != kStoreAction || call.text("name") != name) continue;
    call.arguments["value"] = text;
    if (keep) call.arguments["keep"] = true;
    return {};
  }
  Json arguments = {{"name", name}, {"value", text}};
  if (keep) arguments["keep"] = true;
  if (auto staged = call(kStoreAction, arguments); !staged) return tl::unexpected(staged.error());
  return {};
}

void Stage::add_stored(Json& store) const {
  for (const auto* staged : {&main_, &at_}) {
    if (*staged == nullptr) continue;
    for (const Call& call : (*staged)->order.calls)
      if (call.action == kStoreAction) static_cast<void>(apply_store(store, call.arguments));
  }
}

bool Stage::begin_at(std::int64_t step) {
  if (at_ != nullptr) return false;
  at_ = std::make_shared<StagedOrder>();
  at_->order.at_step = step;
  return true;
}

std::shared_ptr<StagedOrder> Stage::finish_at() {
  auto order = std::move(at_);
  at_ = nullptr;
  if (order->order.changes.empty() && order->order.calls.empty()) return nullptr;
  orders_.push_back(order);
  return order;
}

Result<std::vector<std::shared_ptr<StagedOrder>>> Stage::take() {
  if (main_ != nullptr && !main_->order.changes.empty()) {
    Settings after = settings_;
    for (const Change& change : main_->order.changes) after.set(change.name, change.value, "order");
    if (auto fits = schema_.check_combination(after); !fits) return tl::unexpected(fits.error());
  }
  std::vector<std::shared_ptr<StagedOrder>> taken;
  if (main_ != nullptr && !main_->dropped) taken.push_back(std::move(main_));
  for (auto& order : orders_)
    if (!order->dropped) taken.push_back(std::move(order));
  main_ = nullptr;
  orders_.clear();
  return taken;
}

std::optional<Order> Stage::snapshot() const {
  const auto& now = at_ != nullptr ? at_ : main_;
  return now == nullptr ? std::nullopt : std::optional(now->order);
}

void Stage::restore(std::optional<Order> before) {
  auto& now = at_ != nullptr ? at_ : main_;
  if (now == nullptr) return;
  if (before)
    now->order = *std::move(before);
  else
    now = nullptr;
}

void Stage::drop() {
  for (auto* staged : {&main_, &at_})
    if (*staged != nullptr) std::exchange(*staged, nullptr)->dropped = true;
  for (auto& order : orders_) order->dropped = true;
  orders_.clear();
}

}  // namespace footplate::lua
