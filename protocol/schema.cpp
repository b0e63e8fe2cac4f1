#include "protocol/schema.h"

#include <algorithm>

#include "protocol/schema_json.h"
#include "protocol/schema_names.h"
#include "protocol/schema_values.h"
#include "protocol/settings.h"
#include "protocol/words.h"

namespace footplate {

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
  return text_for_unknown_setting(*this, name);
}

std::string Schema::unknown_action(std::string_view name) const {
  return text_for_unknown_action(*this, name);
}

Result<Value> Schema::check(std::string_view name, const Json& value) const {
  const SettingSpec* spec = setting(name);
  if (spec == nullptr) return fail(ErrorKind::usage, unknown_setting(name));
  return checked_value(*spec, value);
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
  return checked_value(*spec, json_from_text(*spec, text));
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
    const auto taken = checked_value(spec->name + " " + key, *param, value);
    if (!taken) return tl::unexpected(taken.error());
    result[key] = footplate::to_json(*taken);
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
  return schema_to_json(*this);
}

Result<Schema> Schema::from_json(const Json& json) {
  return schema_from_json(json);
}

}  // namespace footplate
