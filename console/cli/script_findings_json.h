#pragma once

#include <optional>
#include <string>
#include <vector>

#include "protocol/json.h"

namespace footplate {

/// What a script would do up to its first wait, as `footplate-lua --check` says it
/// (console/lua/program/script_check.h).
struct ScriptFindings {
  struct Rule {
    std::string text;
    int line = 0;
  };
  std::string path;
  std::string order;  ///< its first one; empty: none
  std::vector<Rule> rules;
  std::string waits;           ///< for what; empty: it ends
  std::optional<Error> error;  ///< its first mistake
};
Result<void> read_json(const Json& json, ScriptFindings& found);

}  // namespace footplate
