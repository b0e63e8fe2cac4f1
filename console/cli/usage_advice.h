#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// What is wrong with a word in the place of a command, with the command that is meant; empty: `word` is
/// among `names`.
std::string unknown_command(const std::string& word, const std::vector<std::string>& names);

/// What is wrong with an option before the command; empty: it is one of the program's.
std::string unknown_program_option(const CLI::App& app, const std::string& word);

/// What CLI11 says about a command line, with the nearest name where it met an unknown one, and how a setting
/// is written where somebody made an option of it.
Error usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace footplate
