#include "console/cli/configuration.h"

#include <cctype>
#include <cstdio>

#include "console/cli/programs.h"
#include "console/lua/config/config.h"
#include "console/lua/config/find_config.h"
#include "protocol/nccl/variable_files.h"

namespace footplate {
namespace {

/// Letters, digits, '_' and '.', so that ./a=b.lua and a-b=c.lua stay files.
bool is_name(std::string_view text) {
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text.front())) == 0) return false;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.') return false;
  return true;
}

/// A word that is meant as a setting, and was taken for a config's name; empty: it may be one.
std::string meant_as_setting(const std::string& word, const Schema& schema) {
  if (schema.setting(word) != nullptr) return word + " is a setting; write " + word + "=VALUE";
  const auto equals = word.find('=');
  const std::string name = word.substr(0, word.find_last_not_of(' ', equals == 0 ? 0 : equals - 1) + 1);
  if (equals == std::string::npos || schema.setting(name) == nullptr) return {};
  const auto value = word.find_first_not_of(' ', equals + 1);
  return "'" + excerpt(word) + "': a setting is written without blanks around '=', " + name + "=" +
         (value == std::string::npos ? "VALUE" : excerpt(word.substr(value)));
}

}  // namespace

ConfigurationWords split_words(const std::vector<std::string>& words) {
  ConfigurationWords split;
  for (const auto& word : words) {
    const auto equals = word.find('=');
    if (equals != std::string::npos && is_name(std::string_view(word).substr(0, equals)))
      split.assignments.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    else
      split.configs.push_back(word);
  }
  return split;
}

Result<Settings> configure(const ConfigurationWords& words, Schema& schema, Settings settings) {
  for (const auto& name : words.configs) {
    if (const std::string text = meant_as_setting(name, schema); !text.empty())
      return fail(ErrorKind::usage, text);
    const auto file = find_config(name, program_folder());
    if (!file) return tl::unexpected(file.error());
    auto merged = evaluate_config(file->path, file->shown_as, schema, std::move(settings), load_schema_of);
    if (!merged) return merged;
    settings = *std::move(merged);
  }
  for (const auto& [name, text] : words.assignments) {
    auto value = check_config_text(schema, name, text);
    if (!value) return fail(ErrorKind::usage, std::string(kCommandLine) + ": " + value.error().message);
    const auto set =
        set_checked_value(schema, settings, name, *std::move(value), kCommandLine, load_schema_of);
    if (!set) return fail(set.error().kind, std::string(kCommandLine) + ": " + set.error().message);
  }
  const Environment environment = environment_of_process();
  for (const auto& line : take_environment(schema, environment, nccl_files(environment), settings))
    std::fprintf(stderr, "footplate: %s\n", line.c_str());
  if (auto good = schema.check_combination(settings); !good) return tl::unexpected(good.error());
  return settings;
}

}  // namespace footplate
