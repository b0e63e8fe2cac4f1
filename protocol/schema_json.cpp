#include "protocol/schema_json.h"

#include <array>

namespace footplate {
namespace {

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
                                                                        {Applies::state, "state"},
                                                                        {Applies::restart, "restart"}}};
constexpr std::array<std::pair<Constraint::Kind, std::string_view>, 6> kConstraints{
    {{Constraint::Kind::divides, "divides"},
     {Constraint::Kind::at_most, "at_most"},
     {Constraint::Kind::at_most_where_set, "at_most_where_set"},
     {Constraint::Kind::product_at_most, "product_at_most"},
     {Constraint::Kind::channels_at_most, "channels_at_most"},
     {Constraint::Kind::needs, "needs"}}};

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
  spec.applies = from_name(kApplies, json.value("applies", "step")).value();
  spec.knobs = json.value("knobs", std::vector<std::string>{});
  spec.metric = json.value("metric", "");
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
  spec.dangerous = json.value("dangerous", false);
  spec.help = json.value("help", "");
  spec.example = json.value("example", "");
  spec.result = json.value("result", "");
  return spec;
}

Json setting_to_json(const SettingSpec& spec) {
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
               {"applies", to_string(spec.applies)},
               {"knobs", spec.knobs}};
  if (!spec.metric.empty()) item["metric"] = spec.metric;
  if (!spec.variable.empty()) item["variable"] = spec.variable;
  if (!spec.syntax.empty()) item["syntax"] = spec.syntax;
  for (const auto& [value, text] : spec.variable_values) item["variable_values"].push_back({value, text});
  return item;
}

Json action_to_json(const ActionSpec& spec) {
  Json item = {{"name", spec.name},           {"params", Json::array()}, {"role", to_string(spec.role)},
               {"dangerous", spec.dangerous}, {"help", spec.help},       {"example", spec.example},
               {"result", spec.result}};
  for (const auto& param : spec.params) {
    Json entry = {{"name", param.name},       {"type", to_string(param.type)},
                  {"unit", param.unit},       {"range", range_to_json(param.range)},
                  {"choices", param.choices}, {"help", param.help}};
    if (param.default_value) entry["default"] = footplate::to_json(*param.default_value);
    item["params"].push_back(std::move(entry));
  }
  return item;
}

Json constraint_to_json(const Constraint& rule) {
  Json item = {{"kind", name_of(kConstraints, rule.kind)}, {"a", rule.a}, {"b", rule.b}, {"help", rule.help}};
  if (rule.kind == Constraint::Kind::product_at_most) item["limit"] = rule.limit;
  if (rule.kind == Constraint::Kind::needs) item["value"] = rule.value;
  return item;
}

}  // namespace

std::string_view to_string(Role role) {
  return name_of(kRoles, role);
}
std::string_view to_string(Applies applies) {
  return name_of(kApplies, applies);
}

Result<Role> role_from_string(std::string_view text) {
  auto role = from_name(kRoles, text);
  if (!role)
    return fail(ErrorKind::usage,
                "unknown role '" + std::string(text) + "'; it is one of view, operate, admin");
  return role;
}

Json schema_to_json(const Schema& schema) {
  Json json = {{"protocol", kProtocolVersion},
               {"settings", Json::array()},
               {"actions", Json::array()},
               {"constraints", Json::array()},
               {"hints", Json::array()}};
  for (const auto& spec : schema.settings) json["settings"].push_back(setting_to_json(spec));
  for (const auto& spec : schema.actions) json["actions"].push_back(action_to_json(spec));
  for (const auto& rule : schema.constraints) json["constraints"].push_back(constraint_to_json(rule));
  for (const auto& hint : schema.hints)
    json["hints"].push_back({{"name", hint.name}, {"text", hint.text}, {"foreign", hint.foreign}});
  return json;
}

Result<Schema> schema_from_json(const Json& json) {
  try {
    Schema schema;
    for (const auto& item : json.at("settings")) schema.settings.push_back(setting_from_json(item));
    for (const auto& item : json.at("actions")) schema.actions.push_back(action_from_json(item));
    for (const auto& item : json.value("constraints", Json::array()))
      // A kind of a later version is for the run alone to check.
      if (const auto kind = from_name(kConstraints, item.at("kind").get<std::string>()))
        schema.constraints.push_back({*kind, item.at("a"), item.at("b"), item.value("help", ""),
                                      item.value("limit", std::int64_t{0}), item.value("value", "")});
    for (const auto& item : json.value("hints", Json::array()))
      schema.hints.push_back({item.at("name"), item.value("text", ""), item.value("foreign", false)});
    return schema;
  } catch (const std::exception& error) {  // Json's exceptions and bad_expected_access
    return fail(ErrorKind::failed, std::string("malformed schema: ") + error.what());
  }
}

}  // namespace footplate
