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

/// The settings these words make, on top of `start`: configs from left to right, then assignments, then what
/// the environment of this process and NCCL's files on this host say (protocol/nccl/variables.h,
/// variable_files.h), then the rules between settings. Prints what those override, or have for nothing.
/// Errors (usage) say file and line, or that it was the command line. Where run.task names a plugin, `schema`
/// becomes that of its runs.
Result<Settings> configure(const ConfigurationWords& words, Schema& schema, Settings start);

}  // namespace footplate
