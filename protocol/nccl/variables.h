#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protocol/settings.h"

namespace footplate {

// Settings that a library reads from environment variables (SettingSpec::variable), in both directions: what
// the environment of `footplate run` says counts for more than a setting, as with the library itself; what it
// doesn't say, every rank sets by its settings before anything else.

/// NAME -> value. Of this process: environment_of_process().
using Environment = std::map<std::string, std::string, std::less<>>;
Environment environment_of_process();

/// A file whose lines the library takes for variables (protocol/nccl/variable_files.h).
struct VariableFile {
  std::string path;
  Environment variables;
};

/// The source of a setting whose value is the environment's; "environment (/etc/nccl.conf)" where it is a
/// file's. is_from_environment() is true of both.
inline constexpr const char* kFromEnvironment = "environment";
bool is_from_environment(const std::string& source);
bool is_from_file(const std::string& source);

/// With whose it is: "NCCL's NCCL_ALGO", "CUDA's CUDA_LAUNCH_BLOCKING".
std::string with_library(const std::string& variable);

/// What `value` of the setting is in its variable. Nothing: the variable stays as it is, because the setting
/// has its default or no variable.
std::optional<std::string> variable_text(const SettingSpec& spec, const Value& value);

/// The setting's value that `text` in its variable means. Errors: there is none, because the library takes
/// more than the setting does.
Result<Value> value_of_variable(const Schema& schema, const SettingSpec& spec, const std::string& text);

/// Gives the settings that `environment` has variables of its values, with "environment" as their source,
/// whatever they were before; settings that an earlier start had from there, and this one hasn't, their
/// default. `files` stand in for what the environment doesn't name, the first that does; an empty variable
/// hides a file's, and sets nothing. A value that the setting can't express stays with the library: the
/// source then has the variable's text. Returns a line for people for each that overrides a setting, and for
/// each variable that nobody reads (Hint::foreign).
std::vector<std::string> take_environment(const Schema& schema, const Environment& environment,
                                          const std::vector<VariableFile>& files, Settings& settings);

/// Where NCCL's RAS listens, on each host ("localhost:28028"): set for a run by its ranks.
inline constexpr auto kRasAddress = "NCCL_RAS_ADDR";

/// One variable that this process has to set.
struct Variable {
  std::string name;
  std::string text;
  std::string setting;
  std::string source;  ///< of the setting
};

/// What `settings` ask of the environment that `environment` doesn't have yet; a variable that is set there,
/// and not to nothing, stays as it is. None of those that new communicators are given (Applies::comm): as
/// variables they could not be changed any more. None that came from a file: the library of each host reads
/// its own.
std::vector<Variable> variables_to_set(const Schema& schema, const Settings& settings,
                                       const Environment& environment);

}  // namespace footplate
