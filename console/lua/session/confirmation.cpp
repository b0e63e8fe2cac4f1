#include "console/lua/session/confirmation.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "protocol/store.h"

namespace footplate::lua {
namespace {

/// A computed value: four digits are enough to see where it went.
std::string rounded(const Value& value) {
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr) return display(value);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", *number);
  return text.data();
}

/// What footplate keeps in store for itself.
bool is_own_note(const Call& call) {
  return call.action == "run.store" && call.text("name").starts_with(kOwnInStore);
}

void append(std::string& list, const std::string& item) {
  list += (list.empty() ? "" : ", ") + item;
}

}  // namespace

std::string confirmation(const Order& order, const OrderReport& report, const Schema& schema) {
  const Applied applied = report.applied.value_or(Applied{});
  std::string asked;
  std::string computed;
  for (const Change& change : order.changes) {
    const auto moved = std::find_if(applied.moved.begin(), applied.moved.end(),
                                    [&](const Moved& item) { return item.name == change.name; });
    if (moved == applied.moved.end() || moved->before == moved->after)
      append(asked, change.name + " stays " + display(change.value));
    else
      append(asked, moved->name + " " + display(moved->before) + " -> " + display(moved->after));
    const SettingSpec* spec = schema.setting(change.name);
    if (spec != nullptr && spec->applies == Applies::restart) asked += " from the next start";
  }
  for (const Moved& moved : applied.moved) {
    const bool named = std::any_of(order.changes.begin(), order.changes.end(),
                                   [&](const Change& change) { return change.name == moved.name; });
    if (!named) append(computed, moved.name + " " + rounded(moved.before) + " -> " + rounded(moved.after));
  }
  if (!computed.empty()) asked += (asked.empty() ? "(" : " (") + computed + ")";
  for (const Call& call : order.calls)
    if (!is_own_note(call)) append(asked, shown_text(call));
  if (asked.empty()) asked = "store";
  const std::string line = asked + ", " + effect_text(applied);
  return line + (report.error.empty() ? "" : "\nALARM: the ranks disagree about it: " + report.error);
}

}  // namespace footplate::lua
