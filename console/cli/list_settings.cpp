// footplate settings: the schema as a table.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>

#include "console/cli/commands.h"
#include "console/cli/programs.h"
#include "console/client/render/render.h"
#include "protocol/task_name.h"

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
  return spec.knobs.empty() ? allowed(spec) : "computed";
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
  if (shown.settings.empty())
    return fail(ErrorKind::usage, for_command_line(schema->unknown_setting(pattern)));
  if (names) {
    for (const auto& spec : shown.settings) std::puts(spec.name.c_str());
    return 0;
  }
  if (json) {
    std::printf("%s\n", (pattern.empty() ? shown.to_json() : shown.to_json()["settings"]).dump(2).c_str());
    return 0;
  }
  std::vector<std::vector<std::string>> rows{{"setting", "default", "allowed", "applies", "help"}};
  for (const auto& spec : shown.settings)
    rows.push_back({spec.name, display(spec.default_value), range_of(spec),
                    std::string(to_string(spec.applies)), spec.help});
  std::fputs(table(rows).c_str(), stdout);
  return 0;
}

}  // namespace

Handler declare_settings(CLI::App& command) {
  auto pattern = std::make_shared<std::string>();
  auto task = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command.add_option("PATTERN", *pattern, "part of a name, an alias or the help");
  command.add_option("--task", *task,
                     "plugin:PATH or python:FILE.py: with the settings that this task declares");
  command.add_flag("--json", *json, "the schema as JSON");
  auto names = std::make_shared<bool>(false);
  command.add_flag("--names", *names, "the names alone, one a line");
  return [=] { return settings(*pattern, *task, *json, *names); };
}

}  // namespace footplate
