#pragma once

#include <optional>
#include <string>

#include "protocol/json.h"

namespace footplate::lua {

/// Reads what a script gave as a table of options, as json_at() has it, field by field. One that is missing
/// is nothing; one that has the wrong type or range throws ScriptError, which names it. One thread.
class TableOptions {
 public:
  /// `table` outlives it; what isn't an object has no fields. `function` begins each message: "try: save is
  /// true or false"; empty: they begin with the name.
  explicit TableOptions(const Json& table, std::string function = {})
      : table_(table), function_(std::move(function)) {}

  bool has(const char* name) const { return find(name) != nullptr; }

  /// What is there, whatever it is; null: nothing.
  const Json* find(const char* name) const;

  std::optional<bool> flag(const char* name) const;

  /// `allowed` ends the message: "is a name".
  std::optional<std::string> text(const char* name, const std::string& allowed) const;

  struct Bounds {
    double least;
    double most;  ///< included
    bool whole = false;
    bool without_least = false;  ///< `least` itself isn't allowed
    bool without_most = false;
  };
  std::optional<double> number(const char* name, const Bounds& bounds, const std::string& allowed) const;

  /// Throws: "try: steps is a number of steps".
  [[noreturn]] void refuse(const std::string& name, const std::string& allowed) const;

 private:
  const Json& table_;
  std::string function_;
};

}  // namespace footplate::lua
