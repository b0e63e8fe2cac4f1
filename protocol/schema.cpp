#include "protocol/schema.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "protocol/nccl/tuning_rules.h"
#include "protocol/settings.h"

namespace footplate {
namespace {

/// Levenshtein distance, where swapping two neighbours ("eveyr") counts once.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                             cost[i - 1][j - 1] + static_cast<std::size_t>(a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

std::string join(const std::vector<std::string>& items, std::string_view between) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : std::string(between)) + item;
  return text;
}

/// NCCL_BUFFSIZE, nccl.NCCL_BUFFSIZE and nccl.buffsize: the variable that may be meant, and the same with the
/// group before it.
std::vector<std::string> variables_meant(std::string_view name) {
  constexpr std::size_t kLongest = 128;
  if (name.size() > kLongest) return {};
  const auto dot = name.find('.');
  const auto upper = [](std::string_view text) {
    std::string result(text);
    for (char& c : result)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return result;
  };
  if (dot == std::string_view::npos) return {std::string(name)};
  const std::string own = upper(name.substr(dot + 1));
  return {own, upper(name.substr(0, dot)) + "_" + own};
}

/// What a variable may hold: it reaches a library as text, and people as a line.
constexpr std::size_t kLongestVariable = 256;
bool fits_variable(std::string_view text) {
  return text.size() <= kLongestVariable &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

/// Type, unit, range and choices of one value; `name` opens the message.
template <class Spec>
Result<Value> checked(const std::string& name, const Spec& spec, const Json& json) {
  auto value = value_from_json(json, spec.type, spec.unit);
  if (!value) {
    std::string hint;
    if (spec.type == Type::choice)
      hint = " (one of " + join(spec.choices, ", ") + ")";
    else if (const std::string range = range_text(spec.range, spec.unit); !range.empty())
      hint = " (" + range + ")";
    return fail(ErrorKind::usage, name + " " + value.error().message + hint);
  }
  if (spec.type == Type::choice) {
    const auto& text = std::get<std::string>(*value);
    if (std::find(spec.choices.begin(), spec.choices.end(), text) == spec.choices.end()) {
      const std::string near = nearest(text, spec.choices);
      return fail(ErrorKind::usage, name + " can't be '" + excerpt(text) + "'; it is one of " +
                                        join(spec.choices, ", ") +
                                        (near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
  }
  if constexpr (std::is_same_v<Spec, SettingSpec>) {
    if (spec.syntax == kTuningRules)
      if (const auto rules = tuning_rules_from_string(std::get<std::string>(*value)); !rules)
        return fail(ErrorKind::usage, name + ", " + rules.error().message);
    if (spec.type == Type::string && !spec.variable.empty() && !fits_variable(std::get<std::string>(*value)))
      return fail(ErrorKind::usage, name + " can't be '" + excerpt(std::get<std::string>(*value)) +
                                        "'; allowed: up to " + std::to_string(kLongestVariable) +
                                        " letters, digits and signs without blanks, as " + spec.variable +
                                        " has them");
  }
  std::vector<double> numbers;
  if (const auto* integer = std::get_if<std::int64_t>(&*value)) numbers = {static_cast<double>(*integer)};
  if (const auto* number = std::get_if<double>(&*value)) numbers = {*number};
  if (const auto* list = std::get_if<std::vector<double>>(&*value)) numbers = *list;
  if (const auto* text = std::get_if<std::string>(&*value))
    if (const auto length = static_cast<double>(text->size()); !spec.range.contains(length))
      return fail(ErrorKind::usage, name + " can't have " + shortest(length) +
                                        " characters; allowed: " + range_text(spec.range, spec.unit));
  for (const double number : numbers)
    if (!spec.range.contains(number))
      return fail(ErrorKind::usage,
                  name + " can't be " + shortest(number) + "; allowed: " + range_text(spec.range, spec.unit));
  return value;
}

template <class Specs>
std::vector<std::string> names_of(const Specs& specs) {
  std::vector<std::string> names;
  for (const auto& spec : specs) names.push_back(spec.name);
  return names;
}

Json range_to_json(const Range& range) {
  Json json = Json::object();
  if (range.min != -std::numeric_limits<double>::infinity()) json["min"] = range.min;
  if (range.max != std::numeric_limits<double>::infinity()) json["max"] = range.max;
  if (range.exclusive_min) json["exclusive_min"] = true;
  return json;
}

Range range_from_json(const Json& json) {
  Range range;
  if (json.contains("min")) range.min = json["min"];
  if (json.contains("max")) range.max = json["max"];
  range.exclusive_min = json.value("exclusive_min", false);
  return range;
}

template <class Enum, std::size_t N>
Result<Enum> from_name(const std::array<std::pair<Enum, std::string_view>, N>& names, std::string_view text) {
  for (const auto& [value, name] : names)
    if (name == text) return value;
  return fail(ErrorKind::usage, "unknown word '" + std::string(text) + "'");
}

constexpr std::array<std::pair<Role, std::string_view>, 3> kRoles{
    {{Role::view, "view"}, {Role::operate, "operate"}, {Role::admin, "admin"}}};
constexpr std::array<std::pair<Applies, std::string_view>, 5> kApplies{{{Applies::fixed, "fixed"},
                                                                        {Applies::step, "step"},
                                                                        {Applies::comm, "comm"},
                                                                        {Applies::restart, "restart"},
                                                                        {Applies::now, "now"}}};
constexpr std::array<std::pair<Scope, std::string_view>, 2> kScopes{
    {{Scope::run, "run"}, {Scope::rank, "rank"}}};
constexpr std::array<std::pair<Constraint::Kind, std::string_view>, 5> kConstraints{
    {{Constraint::Kind::divides, "divides"},
     {Constraint::Kind::at_most, "at_most"},
     {Constraint::Kind::at_most_where_set, "at_most_where_set"},
     {Constraint::Kind::product_at_most, "product_at_most"},
     {Constraint::Kind::channels_at_most, "channels_at_most"}}};

template <class Enum, std::size_t N>
std::string_view name_of(const std::array<std::pair<Enum, std::string_view>, N>& names, Enum value) {
  for (const auto& [known, name] : names)
    if (known == value) return name;
  return "?";
}

SettingSpec setting_from_json(const Json& json) {
  SettingSpec spec;
  spec.name = json.at("name");
  spec.type = type_from_string(json.at("type").get<std::string>()).value();
  spec.unit = json.value("unit", "");
  spec.range = range_from_json(json.value("range", Json::object()));
  spec.usual = range_from_json(json.value("usual", Json::object()));
  spec.choices = json.value("choices", std::vector<std::string>{});
  spec.default_value = value_from_json(json.at("default"), spec.type, spec.unit).value();
  spec.help = json.value("help", "");
  spec.example = json.value("example", "");
  spec.aliases = json.value("aliases", std::vector<std::string>{});
  spec.role = role_from_string(json.value("role", "admin")).value();
  spec.scope = from_name(kScopes, json.value("scope", "run")).value();
  spec.applies = from_name(kApplies, json.value("applies", "step")).value();
  spec.knobs = json.value("knobs", std::vector<std::string>{});
  spec.variable = json.value("variable", "");
  for (const auto& pair : json.value("variable_values", Json::array()))
    spec.variable_values.emplace_back(pair.at(0), pair.at(1));
  spec.syntax = json.value("syntax", "");
  return spec;
}

ActionSpec action_from_json(const Json& json) {
  ActionSpec spec;
  spec.name = json.at("name");
  for (const auto& item : json.value("params", Json::array())) {
    ParamSpec param;
    param.name = item.at("name");
    param.type = type_from_string(item.at("type").get<std::string>()).value();
    param.unit = item.value("unit", "");
    param.range = range_from_json(item.value("range", Json::object()));
    param.choices = item.value("choices", std::vector<std::string>{});
    if (item.contains("default"))
      param.default_value = value_from_json(item["default"], param.type, param.unit).value();
    param.help = item.value("help", "");
    spec.params.push_back(std::move(param));
  }
  spec.role = role_from_string(json.value("role", "operate")).value();
  spec.states = json.value("states", std::vector<std::string>{});
  spec.dangerous = json.value("dangerous", false);
  spec.help = json.value("help", "");
  spec.example = json.value("example", "");
  spec.result = json.value("result", "");
  return spec;
}

/// How `rule` is broken, "a (5, from x.lua:3) is larger than b (4, from default)"; nothing: it isn't.
std::optional<std::string> violation_of(const Constraint& rule, const Settings& settings) {
  const auto side = [&](const std::string& name, const std::string& value) {
    return name + " (" + value + ", from " + settings.source(name) + ")";
  };
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
      break;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Role role) {
  return name_of(kRoles, role);
}
std::string_view to_string(Applies applies) {
  return name_of(kApplies, applies);
}
std::string_view to_string(Scope scope) {
  return name_of(kScopes, scope);
}

Result<Role> role_from_string(std::string_view text) {
  auto role = from_name(kRoles, text);
  if (!role)
    return fail(ErrorKind::usage,
                "unknown role '" + std::string(text) + "'; it is one of view, operate, admin");
  return role;
}

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    const std::size_t shorter = std::min(name.size(), candidate.size());
    if (longer - shorter >= best_distance) continue;  // also keeps a name of a megabyte cheap
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
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
  if (spec.type == Type::choice) return "one of " + join(spec.choices, ", ");
  if (spec.type == Type::boolean) return "true or false";
  const std::string range = range_text(spec.range, spec.unit);
  if (!range.empty()) return range;
  return spec.unit.empty() ? std::string(to_string(spec.type)) : spec.unit;
}

const SettingSpec* Schema::setting(std::string_view name) const {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const auto& spec) { return spec.name == name; });
  return found == settings.end() ? nullptr : &*found;
}

const ActionSpec* Schema::action(std::string_view name) const {
  const auto found =
      std::find_if(actions.begin(), actions.end(), [&](const auto& spec) { return spec.name == name; });
  return found == actions.end() ? nullptr : &*found;
}

std::string unknown_argument(const std::string& function, const std::string& name,
                             const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  return function + " has no argument '" + excerpt(name) + "'; " +
         (!near.empty()   ? "did you mean " + near + "?"
          : known.empty() ? "it takes none"
                          : "it takes " + join(known, ", "));
}

bool Hint::matches(std::string_view other) const {
  const auto star = name.find('*');
  if (star == std::string::npos) return other == name;
  const std::string_view head = std::string_view(name).substr(0, star);
  const std::string_view tail = std::string_view(name).substr(star + 1);
  return other.size() > head.size() + tail.size() && other.starts_with(head) && other.ends_with(tail);
}

const SettingSpec* Schema::setting_of_variable(std::string_view name) const {
  for (const std::string& variable : variables_meant(name))
    for (const auto& spec : settings)
      if (!spec.variable.empty() && spec.variable == variable) return &spec;
  return nullptr;
}

bool Schema::knows_variable(std::string_view name) const {
  if (setting_of_variable(name) != nullptr) return true;
  for (const std::string& variable : variables_meant(name))
    for (const Hint& hint : hints)
      if (hint.matches(variable)) return true;
  return false;
}

std::string Schema::unknown_setting(std::string_view name) const {
  const std::string start = "unknown setting '" + excerpt(name) + "'";
  std::vector<std::string> meant;
  for (const auto& spec : settings)
    if (std::find(spec.aliases.begin(), spec.aliases.end(), name) != spec.aliases.end())
      meant.push_back(spec.name);
  if (!meant.empty()) return start + "; it is called " + join(meant, " or ");
  if (action(name) != nullptr)
    return "'" + std::string(name) + "' is an action, not a setting: call it, " + std::string(name) + "()";
  if (const SettingSpec* spec = setting_of_variable(name)) return start + "; it is called " + spec->name;
  // "NCCL_*" knows less than the nearest variable does.
  const auto hinted = [&](bool open) -> std::string {
    for (const std::string& variable : variables_meant(name))
      for (const Hint& hint : hints)
        if (hint.name.ends_with('*') == open && hint.matches(variable))
          return start + ": " + variable + " " + hint.text;
    return {};
  };
  if (const std::string text = hinted(false); !text.empty()) return text;
  if (name.find('.') == std::string_view::npos && name.find('_') != std::string_view::npos) {
    std::vector<std::string> variables;
    for (const auto& spec : settings)
      if (!spec.variable.empty()) variables.push_back(spec.variable);
    if (const std::string near = nearest(name, variables); !near.empty())
      return start + "; did you mean " + near + "? It is called " + setting_of_variable(near)->name;
    if (const std::string text = hinted(true); !text.empty()) return text;
  }
  if (const std::string near = nearest(name, names_of(settings)); !near.empty())
    return start + "; did you mean " + near + "?";
  const auto group = name.substr(0, name.find('.'));
  std::vector<std::string> members;
  for (const auto& spec : settings)
    if (spec.name.size() > group.size() && spec.name.compare(0, group.size(), group) == 0 &&
        spec.name[group.size()] == '.')
      members.push_back(spec.name);
  if (!members.empty()) return start + "; " + std::string(group) + " has " + join(members, ", ");
  return start + "; settings() lists them all";
}

std::string Schema::unknown_action(std::string_view name) const {
  const std::string near = nearest(name, names_of(actions));
  return "unknown action '" + excerpt(name) + "'" +
         (near.empty() ? "; the actions are " + join(names_of(actions), ", ")
                       : "; did you mean " + near + "?");
}

Result<Value> Schema::check(std::string_view name, const Json& value) const {
  const SettingSpec* spec = setting(name);
  if (spec == nullptr) return fail(ErrorKind::usage, unknown_setting(name));
  auto result = checked(spec->name, *spec, value);
  if (!result) return result;
  if (const auto* list = std::get_if<std::vector<double>>(&*result)) {
    const std::size_t expected = std::get<std::vector<double>>(spec->default_value).size();
    if (list->size() != expected)
      return fail(ErrorKind::usage, spec->name + " is a list of " + std::to_string(expected) +
                                        " numbers, got " + std::to_string(list->size()));
  }
  return result;
}

Result<Value> Schema::check_live(std::string_view name, const Json& value) const {
  const SettingSpec* spec = setting(name);
  if (spec == nullptr) return fail(ErrorKind::usage, unknown_setting(name));
  if (!spec->knobs.empty())
    return fail(ErrorKind::usage,
                spec->name + " is computed and can't be set; set " + join(spec->knobs, " or "));
  if (spec->applies == Applies::fixed)
    return fail(ErrorKind::usage, spec->name + " is fixed for the life of a run; set it in a config or as " +
                                      spec->name + "=… on the command line of a new run");
  return check(name, value);
}

Result<Value> Schema::check_text(std::string_view name, std::string_view text) const {
  const SettingSpec* spec = setting(name);
  if (spec == nullptr) return fail(ErrorKind::usage, unknown_setting(name));
  Json json = std::string(text);
  if (spec->type != Type::string && spec->type != Type::choice) {
    std::string source(text);
    if (spec->type == Type::numbers) {
      // {0.9, 0.99} as in Lua, [0.9,0.99] as in JSON, or 0.9,0.99
      std::erase_if(source, [](char c) { return c == '{' || c == '}' || c == '[' || c == ']'; });
      source = "[" + source + "]";
    }
    const Json parsed = Json::parse(source, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_discarded()) json = parsed;
  }
  return check(name, json);
}

Result<Json> Schema::check_arguments(std::string_view name, const Json& arguments) const {
  const ActionSpec* spec = action(name);
  if (spec == nullptr) return fail(ErrorKind::usage, unknown_action(name));
  if (!arguments.is_object() && !arguments.is_null() && !(arguments.is_array() && arguments.empty()))
    return fail(ErrorKind::usage, spec->name + " takes named arguments: " + spec->example);
  Json result = Json::object();
  for (const auto& [key, value] : arguments.items()) {
    if (key == "force" && value.is_boolean()) {
      result["force"] = value;
      continue;
    }
    const auto param = std::find_if(spec->params.begin(), spec->params.end(),
                                    [&key = key](const auto& p) { return p.name == key; });
    if (param == spec->params.end())
      return fail(ErrorKind::usage, unknown_argument(spec->name, key, names_of(spec->params)));
    auto checked_value = checked(spec->name + " " + key, *param, value);
    if (!checked_value) return tl::unexpected(checked_value.error());
    result[key] = footplate::to_json(*checked_value);
  }
  for (const auto& param : spec->params)
    if (!result.contains(param.name) && param.default_value)
      result[param.name] = footplate::to_json(*param.default_value);
  return result;
}

Result<void> Schema::check_combination(const Settings& settings) const {
  for (const auto& rule : constraints) {
    if (!settings.has(rule.a) || !settings.has(rule.b)) continue;
    if (const auto violation = violation_of(rule, settings))
      return fail(ErrorKind::usage, *violation + ": " + rule.help);
  }
  return {};
}

Json Schema::to_json() const {
  Json json = {{"protocol", kProtocolVersion},
               {"settings", Json::array()},
               {"actions", Json::array()},
               {"constraints", Json::array()},
               {"hints", Json::array()}};
  for (const auto& spec : settings) {
    Json item = {{"name", spec.name},
                 {"type", to_string(spec.type)},
                 {"unit", spec.unit},
                 {"range", range_to_json(spec.range)},
                 {"usual", range_to_json(spec.usual)},
                 {"choices", spec.choices},
                 {"default", footplate::to_json(spec.default_value)},
                 {"help", spec.help},
                 {"example", spec.example},
                 {"aliases", spec.aliases},
                 {"role", to_string(spec.role)},
                 {"scope", to_string(spec.scope)},
                 {"applies", to_string(spec.applies)},
                 {"knobs", spec.knobs}};
    if (!spec.variable.empty()) item["variable"] = spec.variable;
    if (!spec.syntax.empty()) item["syntax"] = spec.syntax;
    for (const auto& [value, text] : spec.variable_values) item["variable_values"].push_back({value, text});
    json["settings"].push_back(std::move(item));
  }
  for (const auto& spec : actions) {
    Json item = {{"name", spec.name},       {"params", Json::array()},     {"role", to_string(spec.role)},
                 {"states", spec.states},   {"dangerous", spec.dangerous}, {"help", spec.help},
                 {"example", spec.example}, {"result", spec.result}};
    for (const auto& param : spec.params) {
      Json entry = {{"name", param.name},       {"type", to_string(param.type)},
                    {"unit", param.unit},       {"range", range_to_json(param.range)},
                    {"choices", param.choices}, {"help", param.help}};
      if (param.default_value) entry["default"] = footplate::to_json(*param.default_value);
      item["params"].push_back(std::move(entry));
    }
    json["actions"].push_back(std::move(item));
  }
  for (const auto& rule : constraints) {
    Json item = {
        {"kind", name_of(kConstraints, rule.kind)}, {"a", rule.a}, {"b", rule.b}, {"help", rule.help}};
    if (rule.kind == Constraint::Kind::product_at_most) item["limit"] = rule.limit;
    json["constraints"].push_back(std::move(item));
  }
  for (const auto& hint : hints)
    json["hints"].push_back({{"name", hint.name}, {"text", hint.text}, {"foreign", hint.foreign}});
  return json;
}

Result<Schema> Schema::from_json(const Json& json) {
  try {
    Schema schema;
    for (const auto& item : json.at("settings")) schema.settings.push_back(setting_from_json(item));
    for (const auto& item : json.at("actions")) schema.actions.push_back(action_from_json(item));
    for (const auto& item : json.value("constraints", Json::array()))
      // A kind of a later version is for the run alone to check.
      if (const auto kind = from_name(kConstraints, item.at("kind").get<std::string>()))
        schema.constraints.push_back({*kind, item.at("a"), item.at("b"), item.value("help", ""),
                                      item.value("limit", std::int64_t{0})});
    for (const auto& item : json.value("hints", Json::array()))
      schema.hints.push_back({item.at("name"), item.value("text", ""), item.value("foreign", false)});
    return schema;
  } catch (const std::exception& error) {  // Json's exceptions and bad_expected_access
    return fail(ErrorKind::failed, std::string("malformed schema: ") + error.what());
  }
}

}  // namespace footplate
