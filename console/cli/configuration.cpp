#include "console/cli/configuration.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "console/cli/programs.h"
#include "console/lua/config/config.h"
#include "console/lua/config/find_config.h"
#include "protocol/nccl/variable_files.h"
#include "protocol/run_end.h"

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

bool assigns(const ConfigurationWords& words, std::string_view name) {
  return std::ranges::any_of(words.assignments, [name](const auto& one) { return one.first == name; });
}

/// A run ends after train.steps or after train.epochs. One on the command line counts for more than the other
/// in a config.
Result<void> choose_end(const ConfigurationWords& words, const Schema& schema, Settings& settings) {
  constexpr const char *kSteps = "train.steps", *kEpochs = "train.epochs";
  if (schema.setting(kEpochs) == nullptr || settings.integer(kEpochs) == 0) return {};
  const std::string& of_steps = settings.source(kSteps);
  if (of_steps == "default" || of_steps == kOfEpochs) return {};
  const bool steps = assigns(words, kSteps), epochs = assigns(words, kEpochs);
  if (steps && !epochs) settings.set(kEpochs, std::int64_t{0}, kCommandLine);
  if (epochs && !steps) settings.set(kSteps, schema.setting(kSteps)->default_value, kOfEpochs);
  if (steps != epochs) return {};
  return fail(ErrorKind::usage,
              "both train.steps (" + display(settings.value(kSteps)) + ", from " + of_steps +
                  ") and train.epochs (" + display(settings.value(kEpochs)) + ", from " +
                  settings.source(kEpochs) +
                  ") say when the run ends; leave one out, or give one as KEY=VALUE, which counts for more");
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
  if (auto end = choose_end(words, schema, settings); !end) return tl::unexpected(end.error());
  const Environment environment = environment_of_process();
  for (const auto& line : take_environment(schema, environment, nccl_files(environment), settings))
    std::fprintf(stderr, "footplate: %s\n", line.c_str());
  if (auto good = schema.check_combination(settings); !good) return tl::unexpected(good.error());
  return settings;
}

}  // namespace footplate
