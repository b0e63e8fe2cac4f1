#pragma once

#include <optional>
#include <string>
#include <vector>

#include "protocol/messages/rules_and_jobs.h"

namespace footplate::lua {

using footplate::to_json;  // those here would hide them

/// A job script that is to be checked.
struct ScriptToCheck {
  std::string path = "script";
  std::string code;
  std::vector<std::string> arguments;
};

/// What footplate-lua --check reads.
struct ScriptsToCheck {
  Json schema = Json::object();
  Json settings = Json::object();
  std::string user;
  std::vector<ScriptToCheck> scripts;
};
/// Error (usage): a field of the wrong type.
Result<void> read_json(const Json& json, ScriptsToCheck& given);

/// What it has found out of a script.
struct ScriptFindings {
  std::vector<RuleSpec> rules;
  std::string order;  ///< what it would order before its first wait
  std::string waits;  ///< and that wait
};

/// A line of what it prints: findings, an error, or both where the script fails on its way.
struct CheckedScript {
  std::string path;
  std::optional<ScriptFindings> findings;
  std::optional<Error> error;
};
Json to_json(const CheckedScript& script);

}  // namespace footplate::lua
