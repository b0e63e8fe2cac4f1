#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/schema.h"

namespace footplate {

/// A row of the table of settings. What a row leaves out is what most settings have: run-wide, set by an
/// admin, in force at the agreed step. The type follows from `value`, the default; a text with `choices` and
/// no `syntax` is a choice. SettingSpec says what each field means.
struct SettingRow {
  const char* name;
  Value value;
  const char* unit = "";
  bool or_time = false;  ///< a whole number of steps, or a time (Type::interval)
  Range range = {};
  Range usual = {};
  std::vector<std::string> choices = {};
  const char* variable = "";
  std::vector<std::pair<std::string, std::string>> variable_values = {};  ///< `choices` follow from them
  const char* syntax = "";
  Applies applies = Applies::step;
  Role role = Role::admin;
  std::vector<std::string> knobs = {};
  const char* metric = "";
  std::vector<std::string> aliases = {};
  const char* help;     ///< full sentences, the last one without its full stop
  const char* example;  ///< a Lua line that runs
};

/// A parameter of an action.
struct ParamRow {
  const char* name;
  Type type;
  std::optional<Value> value = {};  ///< none: it may be left out and has no value
  const char* unit = "";
  Range range = {};
  std::vector<std::string> choices = {};
  const char* help;
};

/// A row of the table of actions: for everybody who operates the run, harmless, without parameters.
struct ActionRow {
  const char* name;
  Role role = Role::operate;
  bool dangerous = false;
  const char* help;  ///< as in SettingRow
  const char* example;
  const char* result;  ///< what :wait() returns, in words
  std::vector<ParamRow> params = {};
};

inline constexpr double kManySteps = 1e9;  ///< more steps than any run takes
inline constexpr double kDay = 86400;      ///< in seconds: the longest deadline

/// Appends the rows to a table.
void add(std::vector<SettingSpec>& table, std::vector<SettingRow> rows);
void add(std::vector<ActionSpec>& table, std::vector<ActionRow> rows);

}  // namespace footplate
