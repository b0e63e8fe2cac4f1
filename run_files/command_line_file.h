#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "protocol/json.h"
#include "protocol/result.h"

namespace footplate {

/// A value that a command line gave, and the first start of those in a row whose command lines had it.
struct GivenSince {
  Json value;
  int start = 0;
};

/// command-line.json: what the last `footplate run` of a run was given, by the settings' names.
using CommandLineFile = std::map<std::string, GivenSince>;

/// Empty where there is none; entries that can't be read are passed over.
CommandLineFile read_command_line_file(const std::filesystem::path& run_directory);

/// Errors: as write_json_file.
Result<void> write_command_line_file(const std::filesystem::path& run_directory,
                                     const CommandLineFile& given);

}  // namespace footplate
