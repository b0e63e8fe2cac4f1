#include "console/lua/reference/help.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "console/lua/reference/columns.h"
#include "protocol/nccl/variables.h"

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
    case Applies::state:
      text += "\napplies at the next step, for which the ranks divide their state";
      break;
    case Applies::restart:
      text += "\napplies at the next start";
      break;
  }
  if (!spec.variable.empty())
    text += " · " + with_library(spec.variable) +
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

/// What one wants to do, and how: fits a terminal of 24 rows and 80 columns.
constexpr std::array<std::array<const char*, 2>, 12> kFirstHelp{{
    {"see where the run is", "status()              ranks()"},
    {"read a metric", "metrics.loss          metrics() has all of them"},
    {"change a setting, at once", "log.every = 10        settings(\"lr\") finds some"},
    {"learn what a name means", "?log.every            ?checkpoint searches"},
    {"take a change back", "undo(), redo()        orders(): what was done"},
    {"evaluate and save", "eval.now()            ckpt.save{ tag = \"good\" }"},
    {"go back to a checkpoint", "ckpt.load(\"good\")"},
    {"try a change, keep the better", "try{ set = { optim = { lr_scale = 0.5 } } }"},
    {"act later, or again and again", "at(9000, { … })       every(9, function() … end)"},
    {"hold the run", "run.pause()           run.resume()"},
    {"follow a value", "\\watch 5 metrics.loss"},
    {"leave; end the run", "quit                  run.stop()"},
}};

std::string first_help() {
  std::string text;
  for (const auto& [wish, way] : kFirstHelp) text += padded(wish, 31) + way + "\n";
  return text +
         "\nThe prompt speaks Lua. What a chunk changes applies on all ranks at one step.\n"
         "Tab completes · Right takes the dim rest · Ctrl-R searches · \\help: more words\n"
         "help all: all settings, actions and functions · help optim: those of a group";
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

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// A line for everything that has `word` in its name or help; empty: nothing has.
std::string search(const Schema& schema, FunctionDocs functions, const std::string& word) {
  constexpr std::size_t kMost = 15, kLeast = 3;
  const std::string wanted = lower(word);
  if (wanted.size() < kLeast) return {};
  std::vector<std::vector<std::string>> in_name, in_help;
  const auto look = [&](const std::string& name, const std::string& shown, const std::string& help) {
    const std::string first = help.substr(0, std::min(help.find('\n'), help.find(". ")));
    if (lower(name).find(wanted) != std::string::npos)
      in_name.push_back({shown, first});
    else if (lower(help).find(wanted) != std::string::npos)
      in_help.push_back({shown, first});
  };
  for (const auto& spec : schema.settings) look(spec.name, spec.name, spec.help);
  for (const auto& spec : schema.actions) look(spec.name, spec.name + "()", spec.help);
  for (const auto& function : functions) look(function.name, function.name, function.help);
  const std::size_t found = in_name.size() + in_help.size();
  if (found == 0) return {};
  in_name.insert(in_name.end(), in_help.begin(), in_help.end());
  in_name.resize(std::min(found, kMost));
  return "no name is '" + word + "'; it is in\n" + in_columns(in_name) +
         (found > kMost ? "\n… and " + std::to_string(found - kMost) + " more" : "");
}

/// What says that there is no such name, and what was meant: the nearest one, or all that have the word.
std::string unknown_help(const Schema& schema, FunctionDocs functions, const std::string& name) {
  const std::string unknown = schema.unknown_setting(name);
  if (unknown.find("did you mean") != std::string::npos) return unknown;
  const std::string found = search(schema, functions, name);
  return found.empty() ? unknown : found;
}

}  // namespace

std::string help_text(const Schema& schema, const Settings& settings, FunctionDocs functions,
                      const std::string& name) {
  if (name.empty()) return first_help();
  if (name == kHelpOfAll) return overview(schema, functions);
  const SettingSpec* setting = schema.setting(name);
  if (const ActionSpec* spec = schema.action(name)) return action_help(*spec);
  // nccl.preset is a setting and a function.
  std::string text =
      setting != nullptr ? setting_help(settings, *setting) : group_help(schema, functions, name);
  for (const auto& function : functions)
    if (name == function.name) text += (text.empty() ? "" : "\n") + function_help(function);
  if (!text.empty()) return text;
  for (const char* known : lua_names())
    if (name == known) return name + ": " + kLuaNameHelp;
  if (const SettingSpec* spec = schema.setting_of_variable(name)) return setting_help(settings, *spec);
  return unknown_help(schema, functions, name);
}

}  // namespace footplate
