#include "runtime/tasks/declared_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>
#include <utility>

namespace footplate {
namespace {

constexpr std::string_view kGroup = "task.";
/// Not to be written as task.NAME in Lua.
constexpr std::array kLuaWords{"and",      "break",  "do",  "else", "elseif", "end",   "false", "for",
                               "function", "goto",   "if",  "in",   "local",  "nil",   "not",   "or",
                               "repeat",   "return", "set", "then", "true",   "until", "while"};

/// Of footplate's own metrics, after train/ or eval/.
constexpr std::array kOwnMetrics{"loss",       "lr",
                                 "epoch",      "grad_norm",
                                 "best",       "seconds",
                                 "full_loss",  "other_loss",
                                 "local_loss", "partial",
                                 "reason",     "step",
                                 "retries",    "batches_wanted",
                                 "batches",    "evaluation_failed",
                                 "samples",    "waited_s"};

constexpr double kLargestShare = 1e9;

/// What is wrong with a declaration; thrown within this file.
struct Unfit {
  std::string what;
};

bool is_name(const std::string& name) {
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' && std::ranges::all_of(name, good) &&
         std::ranges::find(kLuaWords, name) == kLuaWords.end();
}

void check_name(const char* what, const std::string& name, std::set<std::string>& names) {
  if (!is_name(name))
    throw Unfit{
        fmt::format("{} '{}': a name has lower-case letters, digits and '_', begins with a letter and is "
                    "no word of Lua's",
                    what, excerpt(name))};
  if (!names.insert(name).second) throw Unfit{fmt::format("{} '{}' is declared twice", what, name)};
}

void check_metric(const std::string& name, std::set<std::string>& names) {
  check_name("the metric", name, names);
  if (std::ranges::find(kOwnMetrics, name) != kOwnMetrics.end())
    throw Unfit{
        fmt::format("the metric '{}': footplate has one of that name; call it {}_of_task, or by what "
                    "it measures",
                    name, name)};
}

Json parsed(const std::string& what, const std::string& text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    throw Unfit{
        fmt::format("{} has the initial value {}, which isn't JSON; a text is written \"\\\"cosine\\\"\"",
                    what, excerpt(text))};
  return json;
}

Type type_of(const std::string& what, const Json& initial, bool has_choices) {
  if (initial.is_boolean()) return Type::boolean;
  if (initial.is_number_integer()) return Type::integer;
  if (initial.is_number()) return Type::number;
  if (initial.is_string()) return has_choices ? Type::choice : Type::string;
  throw Unfit{fmt::format("{} has the initial value {}: it has to be true or false, a number or a text", what,
                          initial.dump())};
}

Range range_of(const std::string& what, double min, double max) {
  if (std::isnan(min) || std::isnan(max) || min > max)
    throw Unfit{fmt::format("{} has the range {} to {}", what, min, max)};
  return {.min = min, .max = max};
}

/// Nobody could be asked about a value that isn't allowed.
void check_usual(const std::string& what, const Range& allowed, const Range& usual) {
  for (const double bound : {usual.min, usual.max})
    if (std::isfinite(bound) && !allowed.contains(bound))
      throw Unfit{fmt::format("{} has the usual range {} to {}, which isn't within its range, {} to {}", what,
                              usual.min, usual.max, allowed.min, allowed.max)};
}

/// A range is of a number, and choices are of a text.
void check_kind(const std::string& what, const v1::SettingDecl& declared, const Json& initial) {
  if (!declared.choices.empty() && !initial.is_string())
    throw Unfit{
        fmt::format("{} has choices, and its initial value {} is no text; a number has a range, min "
                    "and max, and a boolean is true or false",
                    what, declared.initial)};
  const bool ranges = std::isfinite(declared.min) || std::isfinite(declared.max) ||
                      std::isfinite(declared.usual_min) || std::isfinite(declared.usual_max);
  if (ranges && !initial.is_number())
    throw Unfit{fmt::format("{} has a range, and its initial value {} is no number", what, declared.initial)};
}

Applies applies_of(const std::string& what, const std::string& text) {
  for (const Applies applies : {Applies::step, Applies::restart, Applies::fixed})
    if (to_string(applies) == text) return applies;
  throw Unfit{fmt::format("{} applies '{}'; it has to be step, restart or fixed", what, excerpt(text))};
}

/// As a help text ends in the tables: without its full stop.
std::string help_of(const std::string& what, std::string help) {
  if (help.empty()) throw Unfit{what + " has no help"};
  if (help.ends_with('.')) help.pop_back();
  return help;
}

SettingSpec setting_of(const v1::SettingDecl& declared) {
  const std::string what = "the setting '" + declared.name + "'";
  const Json initial = parsed(what, declared.initial);
  check_kind(what, declared, initial);
  SettingSpec spec;
  spec.name = declared_name(declared.name);
  spec.type = type_of(what, initial, !declared.choices.empty());
  spec.unit = declared.unit;
  spec.range = range_of(what, declared.min, declared.max);
  spec.usual = range_of(what, declared.usual_min, declared.usual_max);
  check_usual(what, spec.range, spec.usual);
  spec.choices = declared.choices;
  spec.help = help_of(what, declared.help);
  spec.aliases = declared.aliases;
  spec.applies = applies_of(what, declared.applies);
  auto value = value_from_json(initial, spec.type, spec.unit);
  if (!value) throw Unfit{what + ": its initial value " + value.error().message};
  spec.default_value = *std::move(value);
  spec.example = spec.name + " = " + to_text(spec.default_value);
  Schema alone;
  alone.settings = {spec};
  if (auto good = alone.check(spec.name, initial); !good)
    throw Unfit{"the initial value of " + what + " isn't allowed: " + good.error().message};
  return spec;
}

ParamSpec parameter_of(const std::string& action, const v1::ParamDecl& declared) {
  const std::string what = "the parameter '" + declared.name + "' of the action '" + action + "'";
  ParamSpec spec;
  spec.name = declared.name;
  const auto type = type_from_string(declared.kind);
  const bool simple = type && (*type == Type::boolean || *type == Type::integer || *type == Type::number ||
                               *type == Type::string);
  if (!simple)
    throw Unfit{fmt::format("{} is of the kind '{}'; it has to be boolean, integer, number or string", what,
                            excerpt(declared.kind))};
  spec.type = *type;
  spec.help = help_of(what, declared.help);
  if (declared.initial.empty()) return spec;
  auto value = value_from_json(parsed(what, declared.initial), spec.type);
  if (!value) throw Unfit{what + ": its initial value " + value.error().message};
  spec.default_value = *std::move(value);
  return spec;
}

ActionSpec action_of(const v1::ActionDecl& declared) {
  const std::string what = "the action '" + declared.name + "'";
  ActionSpec spec;
  spec.name = declared_name(declared.name);
  const auto role = role_from_string(declared.role);
  if (!role || *role == Role::view)
    throw Unfit{
        fmt::format("{} is for the role '{}'; it has to be operate or admin", what, excerpt(declared.role))};
  spec.role = *role;
  spec.dangerous = declared.dangerous;
  spec.help = help_of(what, declared.help);
  spec.example = spec.name + "()";
  spec.result = "what the task answers";
  std::set<std::string> names;
  for (const v1::ParamDecl& param : declared.params) {
    check_name("the parameter", param.name, names);
    spec.params.push_back(parameter_of(declared.name, param));
  }
  return spec;
}

SettingSpec share_of(const v1::SetDecl& declared) {
  const std::string what = "the data set '" + declared.name + "'";
  if (!(declared.share >= 0) || !std::isfinite(declared.share))
    throw Unfit{fmt::format("{} has the share {}; it has to be 0 or above", what, declared.share)};
  SettingSpec spec;
  spec.name = share_setting(declared.name);
  spec.type = Type::number;
  spec.range = {.min = 0, .max = kLargestShare};
  spec.default_value = declared.share;
  spec.help = fmt::format(
      "Of each step's batch, the data set {} gives this share, in proportion to the other sets' shares. "
      "0 = none, it is only evaluated",
      declared.name);
  if (!declared.help.empty()) spec.help = help_of(what, declared.help) + ". " + spec.help;
  spec.example = spec.name + " = 2";
  spec.aliases = {"share." + declared.name, "data.weight." + declared.name, "weight." + declared.name};
  return spec;
}

/// One set is no mixture.
void add_shares(Schema& schema, const std::vector<v1::SetDecl>& sets) {
  std::set<std::string> names;
  std::vector<SettingSpec> shares;
  for (const v1::SetDecl& set : sets) {
    check_name("the data set", set.name, names);
    if (sets.size() > 1) shares.push_back(share_of(set));
  }
  // Beside the other settings of the data.
  const auto last = std::find_if(schema.settings.rbegin(), schema.settings.rend(),
                                 [](const SettingSpec& spec) { return spec.name.starts_with("data."); });
  schema.settings.insert(last.base(), shares.begin(), shares.end());
}

bool is_for_some_tasks(const std::string& setting) {
  return setting.starts_with("model.") || setting == "data.corpus";
}

/// What the task doesn't read isn't there; a rule between settings needs both.
void keep_used(Schema& schema, const std::vector<std::string>& uses) {
  const auto used = [&](const std::string& name) { return std::ranges::find(uses, name) != uses.end(); };
  for (const std::string& name : uses)
    if (schema.setting(name) == nullptr) throw Unfit{"it uses the setting " + name + ", and there is none"};
  std::erase_if(schema.settings,
                [&](const SettingSpec& spec) { return is_for_some_tasks(spec.name) && !used(spec.name); });
  std::erase_if(schema.constraints, [&](const Constraint& rule) {
    return schema.setting(rule.a) == nullptr || (!rule.b.empty() && schema.setting(rule.b) == nullptr);
  });
}

}  // namespace

std::map<std::string, Value> declared_values(const Settings& settings) {
  std::map<std::string, Value> values;
  for (const auto& [name, setting] : settings.all())
    if (name.starts_with(declared_name(""))) values[name] = setting.value;
  return values;
}

std::string declared_name(const std::string& name) {
  return std::string(kGroup) + name;
}

std::string share_setting(const std::string& set) {
  return "data.share." + set;
}

Result<Schema> with_declared(Schema schema, const v1::Declaration& declaration, const std::string& task) {
  try {
    keep_used(schema, declaration.uses);
    std::set<std::string> names, metrics;
    for (const v1::SettingDecl& setting : declaration.settings) {
      check_name("the setting", setting.name, names);
      schema.settings.push_back(setting_of(setting));
    }
    for (const v1::ActionDecl& action : declaration.actions) {
      check_name("the action", action.name, names);
      schema.actions.push_back(action_of(action));
    }
    for (const v1::MetricDecl& metric : declaration.metrics) check_metric(metric.name, metrics);
    add_shares(schema, declaration.sets);
    return schema;
  } catch (const Unfit& unfit) {
    return fail(ErrorKind::usage, "the task " + task + " can't be used: " + unfit.what);
  }
}

}  // namespace footplate
