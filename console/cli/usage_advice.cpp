#include "console/cli/usage_advice.h"

#include <algorithm>
#include <array>
#include <optional>
#include <regex>
#include <sstream>
#include <utility>

#include "console/cli/programs.h"
#include "protocol/schema.h"

namespace footplate {
namespace {

/// What other programs call it.
constexpr std::array kMeant{
    std::pair{"train", "run"},
    std::pair{"start", "run"},
    std::pair{"resume", "run --name RUN --resume auto"},
    std::pair{"list", "ls"},
    std::pair{"ps", "ls"},
    std::pair{"runs", "ls"},
    std::pair{"logs", "log"},
    std::pair{"tail", "log -f"},
    std::pair{"kill", "stop"},
    std::pair{"delete", "rm"},
    std::pair{"remove", "rm"},
    std::pair{"checkpoint", "inspect"},
    std::pair{"show", "inspect"},
    std::pair{"checkpoints", "inspect"},
    std::pair{"plot", "watch"},
    std::pair{"config", "check"},
    std::pair{"tensorboard", "export"},
    std::pair{"validate", "check"},
    std::pair{"eval", "exec"},
    std::pair{"console", "attach"},
    std::pair{"connect", "attach"},
    std::pair{"info", "status"},
    std::pair{"version", "--version"},
};

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // not for people
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string with_nearest(const std::string& start, const std::string& word,
                         const std::vector<std::string>& names) {
  if (const std::string near = nearest(word, names); !near.empty())
    return start + "; did you mean " + near + "?";
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  return start + "; there are " + list;
}

/// Where `option` is a setting's name, or one that people type for it; empty: it isn't.
std::string as_setting(const std::string& option) {
  const auto first = option.find_first_not_of('-');
  if (first == std::string::npos) return {};
  std::string name = option.substr(first);
  std::ranges::replace(name, '-', '_');
  const auto schema = load_schema();
  if (!schema) return {};
  if (const SettingSpec* spec = schema->setting(name); spec != nullptr)
    return spec->name + " is a setting; write it without dashes, " + spec->name + "=VALUE";
  for (const SettingSpec& spec : schema->settings)
    if (std::ranges::find(spec.aliases, name) != spec.aliases.end())
      return "there is a setting for that; write " + spec.name + "=VALUE, without dashes";
  return {};
}

std::string unknown_option(const CLI::App& scope, const std::string& word) {
  const std::string option = word.substr(0, word.find('='));
  if (const std::string text = as_setting(option); !text.empty())
    return "unknown option " + option + "; " + text;
  // Of one letter anything is near.
  if (option.size() <= 2) return with_nearest("unknown option " + option, "", option_names(scope));
  return with_nearest("unknown option " + option, option, option_names(scope));
}

/// "The following arguments were not expected: 5 --element"; what was left is nowhere else after a
/// subcommand's error.
std::string on_extras(const CLI::App& scope, const std::string& message) {
  const auto colon = message.find(": ");
  std::istringstream words(message.substr(colon == std::string::npos ? 0 : colon + 2));
  std::string first;
  for (std::string word; words >> word;) {
    if (word.size() > 1 && word.front() == '-') return unknown_option(scope, word);
    if (first.empty()) first = word;
  }
  return "unexpected argument '" + first + "'";
}

/// "--timeout: Value never not in range 0.000000 to 1000000.000000"
std::string on_range(const std::string& message) {
  static const std::regex kRange(R"((-[\w-]+): Value (.*) not in range ([\d.]+) to ([\d.]+))");
  constexpr std::size_t kLongest = 300;
  std::smatch found;
  if (message.size() > kLongest || !std::regex_match(message, found, kRange)) return message;
  const auto number = [](std::string text) {
    if (text.find('.') == std::string::npos) return text;
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  };
  return found.str(1) + " takes a number from " + number(found.str(3)) + " to " + number(found.str(4)) +
         ", not '" + found.str(2) + "'";
}

}  // namespace

std::string unknown_command(const std::string& word, const std::vector<std::string>& names) {
  if (std::ranges::find(names, word) != names.end()) return {};
  const std::string start = "unknown command '" + word + "'";
  for (const auto& [others, ours] : kMeant)
    if (word == others) return start + "; did you mean footplate " + ours + "?";
  return with_nearest(start, word, names);
}

std::string unknown_program_option(const CLI::App& app, const std::string& word) {
  const auto names = option_names(app);
  if (std::ranges::find(names, word) != names.end()) return {};
  return unknown_option(app, word);
}

Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto used = app.get_subcommands();
  const CLI::App& scope = used.empty() ? app : *used.front();
  const std::string help = used.empty() ? "footplate --help" : "footplate " + scope.get_name() + " --help";
  std::string message = error.what();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
    message = on_extras(scope, message);
  return {ErrorKind::usage, on_range(message) + " (" + help + ")"};
}

}  // namespace footplate
