#include "console/lua/session/questions.h"

#include <cmath>

namespace footplate::lua {
namespace {

constexpr double kLargeChange = 10;  ///< times

std::optional<double> as_number(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

/// 0 switches something off or on: that is no matter of size.
bool is_large_change(double before, double after) {
  if (before == 0 || after == 0) return false;
  const double ratio = std::abs(after / before);
  return ratio > kLargeChange || ratio < 1 / kLargeChange;
}

/// What only changes what is shown can't hurt a run.
bool is_harmless(const SettingSpec& spec) {
  return spec.name.starts_with("log.");
}

/// What makes the run end sooner, perhaps now.
bool ends_sooner(const Change& change, const Value& before) {
  const auto now = as_number(before);
  const auto after = as_number(change.value);
  if (!now || !after) return false;
  if (change.name == "train.steps") return *after < *now;
  return change.name == "run.time_limit" && *after > 0 && (*now == 0 || *after < *now);
}

/// Why `change` needs a question; empty: it needs none.
std::string doubt(const Change& change, const SettingSpec& spec, const Value& before) {
  const auto after = as_number(change.value);
  if (!after || change.value == before || is_harmless(spec)) return {};
  if (ends_sooner(change, before)) return "the run ends sooner";
  if (!spec.usual.contains(*after)) return "usual is " + range_text(spec.usual, spec.unit);
  const auto now = as_number(before);
  return now && is_large_change(*now, *after) ? "more than ten times as much or as little" : "";
}

}  // namespace

std::vector<std::string> questions(const StagedOrder& order, const Schema& schema, const Settings& settings,
                                   Role role) {
  std::vector<std::string> asked;
  for (const Change& change : order.order.changes) {
    const SettingSpec* spec = schema.setting(change.name);
    if (spec == nullptr || role < spec->role) return {};
    if (order.forced.contains(change.name)) continue;
    const Value& before = settings.value(change.name);
    if (const std::string why = doubt(change, *spec, before); !why.empty())
      asked.push_back(change.name + " " + display(before) + " -> " + display(change.value) + ": " + why);
  }
  for (const Call& call : order.order.calls) {
    const ActionSpec* spec = schema.action(call.action);
    if (spec == nullptr || role < spec->role) return {};
    if (spec->dangerous && !order.forced.contains(call.action))
      asked.push_back(to_text(call) + ": " + spec->help);
  }
  return asked;
}

}  // namespace footplate::lua
