#include "console/lua/reference/help.h"

#include <algorithm>
#include <vector>

#include "console/lua/reference/columns.h"

namespace footplate {
namespace {

/// Pads `text` with blanks to `width` columns (of ASCII).
std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string usual_text(const SettingSpec& spec) {
  const std::string usual = range_text(spec.usual, spec.unit);
  return usual.empty() ? "" : " (usual: " + usual + ")";
}

std::string setting_help(const Settings& settings, const SettingSpec& spec) {
  const Value& value = settings.value(spec.name);
  std::string text = spec.name + " = " + to_text(value) + (spec.unit.empty() ? "" : " " + spec.unit) + "\n" +
                     spec.help + "\nallowed: " + allowed(spec) + usual_text(spec) +
                     " · default: " + to_text(spec.default_value) + " · from: " + settings.source(spec.name);
  if (!spec.knobs.empty()) {
    text += "\ncomputed; set";
    for (const auto& knob : spec.knobs) text += (&knob == &spec.knobs.front() ? " " : " or ") + knob;
    return text;
  }
  switch (spec.applies) {
    case Applies::fixed:
      text += "\nfixed for the life of a run";
      break;
    case Applies::step:
      text += "\napplies at the next step, on all ranks";
      break;
    case Applies::comm:
      text += "\napplies at the next step, with new communicators";
      break;
    case Applies::restart:
      text += "\napplies at the next start";
      break;
  }
  if (!spec.variable.empty())
    text += " · NCCL's " + spec.variable +
            (spec.applies == Applies::comm ? ", which counts for more where the environment has it"
                                           : ": the ranks set it at their start");
  return text + " · role " + std::string(to_string(spec.role)) +
         (spec.example.empty() ? "" : "\nexample: " + spec.example);
}

std::string action_help(const ActionSpec& spec) {
  std::string text = spec.name + "()\n" + spec.help;
  for (const auto& param : spec.params)
    text += "\n  " + padded(param.name, 12) + param.help + " (" + std::string(to_string(param.type)) +
            (param.default_value ? ", " + to_text(*param.default_value) : "") + ")";
  if (!spec.result.empty()) text += "\n:wait() returns " + spec.result;
  return text + "\nrole " + std::string(to_string(spec.role)) +
         (spec.example.empty() ? "" : "\nexample: " + spec.example);
}

std::string overview(const Schema& schema, FunctionDocs functions) {
  std::string text = "settings, as in log.every = 10 (help(\"log.every\") explains one):\n";
  std::string group;
  for (const auto& spec : schema.settings) {
    const std::string own = spec.name.substr(0, spec.name.find('.'));
    text += own == group ? " " : (group.empty() ? "  " : "\n  ") + padded(own, 8);
    text += spec.name.substr(std::min(spec.name.size(), own.size() + 1));
    group = own;
  }
  text += "\nactions:\n";
  for (const auto& spec : schema.actions) text += "  " + padded(spec.name, 16) + spec.help + "\n";
  text += "functions:\n";
  for (const auto& function : functions)
    if (function.in_overview) text += "  " + function.line() + "\n";
  text.pop_back();
  return text;
}

/// comm.report, of comm: what a schema doesn't describe.
bool is_function_of(const FunctionDoc& function, const std::string& group) {
  return std::string_view(function.name).starts_with(group + ".") && *function.example != '\0' &&
         !function.in_overview;
}

std::string function_help(const FunctionDoc& function) {
  const bool shows_name = function.in_overview || *function.example != '\0';
  return shows_name ? function.line() : function.name + (": " + function.line());
}

std::string group_help(const Schema& schema, FunctionDocs functions, const std::string& group) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& spec : schema.settings)
    if (spec.name.starts_with(group + ".")) rows.push_back({spec.name, spec.help});
  for (const auto& spec : schema.actions)
    if (spec.name.starts_with(group + ".")) rows.push_back({spec.name + "()", spec.help});
  std::string text = in_columns(rows);
  for (const auto& function : functions)
    if (is_function_of(function, group)) text += (text.empty() ? "" : "\n") + function.line();
  return text;
}

}  // namespace

std::string help_text(const Schema& schema, const Settings& settings, FunctionDocs functions,
                      const std::string& name) {
  if (name.empty()) return overview(schema, functions);
  if (const SettingSpec* spec = schema.setting(name)) return setting_help(settings, *spec);
  if (const ActionSpec* spec = schema.action(name)) return action_help(*spec);
  std::string text = group_help(schema, functions, name);
  for (const auto& function : functions)
    if (name == function.name) text += (text.empty() ? "" : "\n") + function_help(function);
  if (!text.empty()) return text;
  for (const char* known : lua_names())
    if (name == known) return name + ": " + kLuaNameHelp;
  if (const SettingSpec* spec = schema.setting_of_variable(name)) return setting_help(settings, *spec);
  return schema.unknown_setting(name);
}

}  // namespace footplate
