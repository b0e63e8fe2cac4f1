#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "console/cli/script_findings_json.h"
#include "protocol/settings.h"

namespace footplate {

/// --script FILE… [--script-argument ARG]… [-- ARGS] of a command line. All arguments reach each of the
/// scripts.
struct ScriptOptions {
  std::vector<std::string> files;
  std::vector<std::string> arguments;     ///< of --script-argument
  std::vector<std::string> after_dashes;  ///< as with_script_arguments marks them
};

void declare_scripts(CLI::App& command, ScriptOptions& options);

/// The words of a command line, for CLI11: those after `--` become what declare_scripts understands, where
/// the command is one that takes scripts; otherwise they are positional, as everywhere.
std::vector<std::string> with_script_arguments(std::vector<std::string> words);

/// A job script as it was read.
struct Script {
  std::string name;  ///< of the job: the file's, without .lua, with a number where that is taken
  std::string path;  ///< as given
  std::string code;
};

/// Errors (usage): a file that can't be read, or is longer than a chunk may be.
Result<std::vector<Script>> read_scripts(const ScriptOptions& options);

/// Runs each script up to its first wait in a footplate-lua of its own, without a run, and says what each
/// would do. Errors (script): the first mistake, with file and line.
Result<std::vector<ScriptFindings>> check_scripts(const std::vector<Script>& scripts,
                                                  const ScriptOptions& options, const Schema& schema,
                                                  const Settings& settings);

/// Leaves the scripts in RUN/jobs for the console (docs/protocol.md, "Job scripts"). None given where the run
/// goes on: those of an earlier start stay. `unattended`: an error stops the run.
Result<void> keep_scripts(const std::filesystem::path& run_directory, const std::vector<Script>& scripts,
                          const ScriptOptions& options, bool goes_on, bool unattended);

}  // namespace footplate
