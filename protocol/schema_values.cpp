#include "protocol/schema_values.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "protocol/nccl/tuning_rules.h"
#include "protocol/settings.h"
#include "protocol/task_name.h"
#include "protocol/words.h"

namespace footplate {
namespace {

/// What a variable may hold: it reaches a library as text, and people as a line.
constexpr std::size_t kLongestVariable = 256;
bool fits_variable(std::string_view text) {
  return text.size() <= kLongestVariable &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

/// Of a value that could not be read: what it could be, in parentheses.
template <class Spec>
std::string hint_of(const Spec& spec) {
  if (spec.type == Type::choice) return " (one of " + join(spec.choices) + ")";
  const std::string range = range_text(spec.range, spec.unit);
  return range.empty() ? "" : " (" + range + ")";
}

/// What people write who come from elsewhere; empty: nothing is known.
std::string choice_meant(const std::string& text, const std::vector<std::string>& choices) {
  for (const auto& [others, ours] :
       {std::pair{"gpu", "cuda"}, std::pair{"GPU", "cuda"}, std::pair{"fp16", "bf16"},
        std::pair{"half", "bf16"}, std::pair{"bfloat16", "bf16"}, std::pair{"float32", "fp32"},
        std::pair{"float", "fp32"}})
    if (text == others && std::ranges::find(choices, ours) != choices.end()) return ours;
  return nearest(text, choices);
}

Result<void> check_choice(const std::string& name, const std::vector<std::string>& choices,
                          const std::string& text) {
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return {};
  const std::string near = choice_meant(text, choices);
  return fail(ErrorKind::usage, name + " can't be '" + excerpt(text) + "'; it is one of " + join(choices) +
                                    (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

/// {500, 1e-3, 2000, 0}: steps that rise, each with its rate.
Result<void> check_points(const std::string& name, const std::vector<double>& points) {
  constexpr std::size_t kPair = 2;
  const std::string as_in = "; as in " + name + " = { {1, 1e-4}, {500, 1e-3} }";
  if (points.size() % kPair != 0)
    return fail(ErrorKind::usage, name + " has a step without its rate: " + std::to_string(points.size()) +
                                      " numbers are no pairs" + as_in);
  for (std::size_t i = 0; i < points.size(); i += kPair) {
    if (points[i] != std::floor(points[i]))
      return fail(ErrorKind::usage,
                  name + ": " + shortest(points[i]) + " is no step, which is a whole number" + as_in);
    if (i > 0 && points[i] <= points[i - kPair])
      return fail(ErrorKind::usage, name + ": step " + shortest(points[i]) + " comes after step " +
                                        shortest(points[i - kPair]) + "; the steps of the points rise" +
                                        as_in);
  }
  return {};
}

/// What is more than text: rules, and what a library reads from its environment.
Result<void> check_syntax(const SettingSpec& spec, const Value& value) {
  if (spec.syntax == kSchedulePoints) return check_points(spec.name, std::get<std::vector<double>>(value));
  if (spec.type != Type::string) return {};
  const auto& text = std::get<std::string>(value);
  if (spec.syntax == kTuningRules)
    if (const auto rules = tuning_rules_from_string(text); !rules)
      return fail(ErrorKind::usage, spec.name + ", " + rules.error().message);
  if (spec.syntax == kTaskName)
    if (auto known = check_task_name(spec.name, spec.choices, text); !known) return known;
  if (!spec.variable.empty() && !fits_variable(text))
    return fail(ErrorKind::usage, spec.name + " can't be '" + excerpt(text) + "'; allowed: up to " +
                                      std::to_string(kLongestVariable) +
                                      " letters, digits and signs without blanks, as " + spec.variable +
                                      " has them");
  return {};
}

/// A list of pairs as one list, where the setting has points.
Json flattened(const SettingSpec& spec, const Json& json) {
  if (spec.syntax != kSchedulePoints || !json.is_array()) return json;
  Json flat = Json::array();
  for (const Json& item : json) {
    if (!item.is_array()) return json;
    for (const Json& number : item) flat.push_back(number);
    if (item.size() != 2) return flat;  // which is said of the whole
  }
  return flat;
}

/// Of a text its length, of a list each number.
template <class Spec>
Result<void> check_range(const std::string& name, const Spec& spec, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value); text != nullptr && spec.type != Type::interval)
    if (const auto length = static_cast<double>(text->size()); !spec.range.contains(length))
      return fail(ErrorKind::usage, name + " can't have " + shortest(length) +
                                        " characters; allowed: " + range_text(spec.range, spec.unit));
  std::vector<double> numbers;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) numbers = {static_cast<double>(*integer)};
  if (const auto* number = std::get_if<double>(&value)) numbers = {*number};
  if (const auto* list = std::get_if<std::vector<double>>(&value)) numbers = *list;
  for (const double number : numbers)
    if (!spec.range.contains(number))
      return fail(ErrorKind::usage,
                  name + " can't be " + shortest(number) + "; allowed: " + range_text(spec.range, spec.unit));
  return {};
}

/// Type, unit and choice.
template <class Spec>
Result<Value> read_value(const std::string& name, const Spec& spec, const Json& json) {
  auto value = value_from_json(json, spec.type, spec.unit);
  if (!value) return fail(ErrorKind::usage, name + " " + value.error().message + hint_of(spec));
  if (spec.type == Type::choice)
    if (auto known = check_choice(name, spec.choices, std::get<std::string>(*value)); !known)
      return tl::unexpected(known.error());
  return value;
}

Result<void> check_length(const SettingSpec& spec, const Value& value) {
  const auto* list = std::get_if<std::vector<double>>(&value);
  if (list == nullptr || spec.syntax == kSchedulePoints) return {};
  const std::size_t expected = std::get<std::vector<double>>(spec.default_value).size();
  if (list->size() == expected) return {};
  return fail(ErrorKind::usage, spec.name + " is a list of " + std::to_string(expected) + " numbers, got " +
                                    std::to_string(list->size()));
}

}  // namespace

Result<Value> checked_value(const SettingSpec& spec, const Json& json) {
  auto value = read_value(spec.name, spec, flattened(spec, json));
  if (!value) return value;
  for (const auto& check :
       {check_syntax(spec, *value), check_range(spec.name, spec, *value), check_length(spec, *value)})
    if (!check) return tl::unexpected(check.error());
  return value;
}

Result<Value> checked_value(const std::string& name, const ParamSpec& spec, const Json& json) {
  auto value = read_value(name, spec, json);
  if (!value) return value;
  if (auto inside = check_range(name, spec, *value); !inside) return tl::unexpected(inside.error());
  return value;
}

Json json_from_text(const SettingSpec& spec, std::string_view text) {
  if (spec.type == Type::string || spec.type == Type::choice) return std::string(text);
  std::string source(text);
  if (spec.type == Type::numbers) {
    // {0.9, 0.99} as in Lua, [0.9,0.99] as in JSON, or 0.9,0.99
    std::erase_if(source, [](char c) { return c == '{' || c == '}' || c == '[' || c == ']'; });
    source = "[" + source + "]";
  }
  Json parsed = Json::parse(source, nullptr, /*allow_exceptions=*/false);
  return parsed.is_discarded() ? Json(std::string(text)) : parsed;
}

std::string range_text(const Range& range, std::string_view unit) {
  if (!range.bounded()) return {};
  const std::string tail = unit.empty() ? "" : " " + std::string(unit);
  const bool lower = range.min != -std::numeric_limits<double>::infinity();
  const bool upper = range.max != std::numeric_limits<double>::infinity();
  if (lower && upper)
    return (range.exclusive_min ? "above " + shortest(range.min) + ", at most "
                                : shortest(range.min) + " to ") +
           shortest(range.max) + tail;
  if (lower) return (range.exclusive_min ? "above " : "at least ") + shortest(range.min) + tail;
  return "at most " + shortest(range.max) + tail;
}

std::string allowed(const SettingSpec& spec) {
  if (spec.type == Type::choice) return "one of " + join(spec.choices);
  if (spec.syntax == kTaskName) return allowed_tasks(spec.choices);
  if (spec.type == Type::boolean) return "true or false";
  const std::string range = range_text(spec.range, spec.unit);
  if (spec.type == Type::interval) return range + ", or a time of 1s to 30d";
  if (!range.empty()) return range;
  return spec.unit.empty() ? std::string(to_string(spec.type)) : spec.unit;
}

std::optional<std::string> violation_of(const Constraint& rule, const Settings& settings) {
  const auto side = [&](const std::string& name, const std::string& value) {
    return name + " (" + value + ", from " + settings.source(name) + ")";
  };
  if (rule.kind == Constraint::Kind::needs) {
    const std::string a = settings.string(rule.a), b = settings.string(rule.b);
    if (a != rule.value || b == rule.value) return std::nullopt;
    return side(rule.a, a) + " needs the same of " + side(rule.b, b);
  }
  const std::int64_t b = settings.integer(rule.b);
  const std::string right = side(rule.b, std::to_string(b));
  if (rule.kind == Constraint::Kind::channels_at_most) {
    const auto rules = tuning_rules_from_string(settings.string(rule.a));
    if (rules)  // else its own check refuses it
      for (const TuningRule& one : *rules)
        if (one.channels > b) return side(rule.a, to_string(one)) + " has more channels than " + right;
    return std::nullopt;
  }
  const std::int64_t a = settings.integer(rule.a);
  const std::string left = side(rule.a, std::to_string(a));
  switch (rule.kind) {
    case Constraint::Kind::divides:
      if (b > 0 && a % b == 0) return std::nullopt;
      return left + " is not divisible by " + right;
    case Constraint::Kind::at_most_where_set:
      if (a == 0 || b == 0) return std::nullopt;
      [[fallthrough]];
    case Constraint::Kind::at_most:
      if (a <= b) return std::nullopt;
      return left + " is larger than " + right;
    case Constraint::Kind::product_at_most:
      if (static_cast<double>(a) * static_cast<double>(b) <= static_cast<double>(rule.limit))
        return std::nullopt;
      return left + " times " + right + " is more than " + std::to_string(rule.limit);
    case Constraint::Kind::channels_at_most:
    case Constraint::Kind::needs:
      break;
  }
  return std::nullopt;
}

}  // namespace footplate
