#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "protocol/settings.h"

namespace footplate {

/// CONFIG… and KEY=VALUE… of a command line, told apart.
struct ConfigurationWords {
  std::vector<std::string> configs;
  std::vector<std::pair<std::string, std::string>> assignments;
};

/// A word is an assignment where a dotted name comes before its first '='.
ConfigurationWords split_words(const std::vector<std::string>& words);

/// The settings these words make, on top of `start`: configs from left to right, then assignments, then the
/// rules between settings. Errors (usage) say file and line, or that it was the command line.
Result<Settings> configure(const ConfigurationWords& words, const Schema& schema, Settings start);

/// Gives `settings` what the environment of this process says (protocol/variables.h), and prints what is
/// overridden by it, or does nothing there.
void take_process_environment(const Schema& schema, Settings& settings);

}  // namespace footplate
