#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// What a subcommand does once the command line is read: returns the exit code, or an error whose kind is
/// one.
using Handler = std::function<Result<int>()>;

/// A line of the table: `declare` adds options to the subcommand and returns its handler.
struct CommandEntry {
  const char* group;  ///< what people use it for: the heading in `footplate help`
  const char* name;
  const char* help;
  Handler (*declare)(CLI::App& command);
};

/// All subcommands, in the order that help shows them.
const std::vector<CommandEntry>& commands();

/// All subcommands in their groups, for `footplate help`.
std::string commands_text();

/// For the check of an option that names a new run: what is wrong with that name; empty: nothing. Not left to
/// the command, which takes an empty one for none.
std::string why_no_run_name(const std::string& name);

Handler declare_run(CLI::App& command);
Handler declare_replay(CLI::App& command);
Handler declare_inspect(CLI::App& command);
Handler declare_report(CLI::App& command);
Handler declare_attach(CLI::App& command);
Handler declare_exec(CLI::App& command);
Handler declare_status(CLI::App& command);
Handler declare_stop(CLI::App& command);
Handler declare_ls(CLI::App& command);
Handler declare_rm(CLI::App& command);
Handler declare_completion(CLI::App& command);
Handler declare_log(CLI::App& command);
Handler declare_check(CLI::App& command);
Handler declare_settings(CLI::App& command);
Handler declare_watch(CLI::App& command);
Handler declare_doctor(CLI::App& command);
Handler declare_export(CLI::App& command);

}  // namespace footplate
