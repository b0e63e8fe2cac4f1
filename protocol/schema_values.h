#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "protocol/schema.h"

namespace footplate {

// What a value may be: type, unit, range, choices, and how settings have to fit each other. Any thread.

/// `json` as a value of `spec`. Error (usage): what is wrong, the value, and what is allowed; opened by the
/// name.
Result<Value> checked_value(const SettingSpec& spec, const Json& json);

/// The same of a parameter; `name` opens the message: "ckpt.save tag".
Result<Value> checked_value(const std::string& name, const ParamSpec& spec, const Json& json);

/// What a command line means by `text` for this setting, not yet checked.
Json json_from_text(const SettingSpec& spec, std::string_view text);

/// How `rule` is broken, "a (5, from x.lua:3) is larger than b (4, from default)"; nothing: it isn't.
std::optional<std::string> violation_of(const Constraint& rule, const Settings& settings);

}  // namespace footplate
