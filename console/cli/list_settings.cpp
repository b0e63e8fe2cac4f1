// footplate settings: the schema as a table.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>

#include "console/cli/commands.h"
#include "console/cli/programs.h"
#include "console/client/render/render.h"
#include "protocol/task_name.h"
#include "protocol/words.h"

namespace footplate {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// `pattern` occurs in the name, an alias or the help.
bool matches(const SettingSpec& spec, const std::string& pattern) {
  const auto has = [&](const std::string& text) { return lower(text).find(pattern) != std::string::npos; };
  return has(spec.name) || has(spec.help) || has(spec.variable) ||
         std::any_of(spec.aliases.begin(), spec.aliases.end(), has);
}

std::string range_of(const SettingSpec& spec) {
  const std::string usual = range_text(spec.usual, spec.unit);
  return spec.knobs.empty() ? allowed(spec) + (usual.empty() ? "" : ", usually " + usual) : "computed";
}

/// Those of the task's own: footplate's are the console's to tell.
std::vector<ActionSpec> actions_of_task(const Schema& schema, const std::string& pattern) {
  std::vector<ActionSpec> actions;
  for (const ActionSpec& spec : schema.actions)
    if (spec.name.starts_with("task.") && (lower(spec.name).find(pattern) != std::string::npos ||
                                           lower(spec.help).find(pattern) != std::string::npos))
      actions.push_back(spec);
  return actions;
}

std::string arguments_of(const ActionSpec& action) {
  std::vector<std::string> texts;
  for (const ParamSpec& param : action.params)
    texts.push_back(param.name + " " +
                    (param.default_value ? "= " + to_text(*param.default_value)
                                         : "(" + std::string(to_string(param.type)) + ")"));
  return join(texts);
}

std::string table_of_settings(const Schema& schema) {
  if (schema.settings.empty()) return {};
  std::vector<std::vector<std::string>> rows{{"setting", "default", "allowed", "applies", "help"}};
  for (const auto& spec : schema.settings)
    rows.push_back({spec.name, display(spec.default_value), range_of(spec),
                    std::string(to_string(spec.applies)), spec.help});
  return table(rows);
}

std::string table_of_actions(const std::vector<ActionSpec>& actions) {
  if (actions.empty()) return {};
  std::vector<std::vector<std::string>> rows{{"action", "arguments", "role", "help"}};
  for (const ActionSpec& spec : actions)
    rows.push_back({spec.name, arguments_of(spec), std::string(to_string(spec.role)), spec.help});
  return "\n" + table(rows);
}

/// What the schema says to a prompt, at a shell.
std::string for_command_line(std::string text) {
  constexpr std::string_view kAtPrompt = "settings() lists them all";
  if (const auto place = text.find(kAtPrompt); place != std::string::npos)
    text.replace(place, kAtPrompt.size(), "footplate settings lists them all");
  return text;
}

Result<int> settings(const std::string& pattern, const std::string& task, bool json, bool names) {
  const auto schema = load_schema_of(absolute_task(task));
  if (!schema) return tl::unexpected(schema.error());
  Schema shown = *schema;
  std::erase_if(shown.settings, [&](const auto& spec) { return !matches(spec, lower(pattern)); });
  const auto actions = actions_of_task(*schema, lower(pattern));
  if (shown.settings.empty() && (actions.empty() || names || json))
    return fail(ErrorKind::usage, for_command_line(schema->unknown_setting(pattern)));
  if (names) {
    for (const auto& spec : shown.settings) std::puts(spec.name.c_str());
    return 0;
  }
  if (json) {
    std::printf("%s\n", (pattern.empty() ? shown.to_json() : shown.to_json()["settings"]).dump(2).c_str());
    return 0;
  }
  std::fputs((table_of_settings(shown) + table_of_actions(actions)).c_str(), stdout);
  return 0;
}

}  // namespace

Handler declare_settings(CLI::App& command) {
  auto pattern = std::make_shared<std::string>();
  auto task = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command.add_option("PATTERN", *pattern, "part of a name, an alias or the help");
  command.add_option(
      "--task", *task,
      "rvq, classify, plugin:PATH or python:FILE.py: with the settings and actions that this task declares");
  command.add_flag("--json", *json, "the schema as JSON");
  auto names = std::make_shared<bool>(false);
  command.add_flag("--names", *names, "the names alone, one a line");
  return [=] { return settings(*pattern, *task, *json, *names); };
}

}  // namespace footplate
