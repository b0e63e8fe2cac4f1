#pragma once

#include <lua.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/json.h"
#include "protocol/value.h"

namespace footplate::lua {

/// Registers the metatables that push_json and push_value need. Once per state.
void open_convert(lua_State* state);

/// Pushes `json` as Lua data. Tagged strings ("@nan") become numbers, null becomes nil.
void push_json(lua_State* state, const Json& json);

/// Pushes text as it is: "@nan" isn't a number here.
void push_text(lua_State* state, std::string_view text);

/// Pushes what `object` has by that name, or nil.
void push_field(lua_State* state, const Json& object, const std::string& name);

/// Pushes a setting's value; a list comes as a read-only one whose error says to assign the whole of `name`.
void push_value(lua_State* state, const Value& value, const std::string& name);

/// Pushes a setting's value; a list comes as a table of its own, and changing that changes no setting.
void push_copy(lua_State* state, const Value& value);

/// A setting's value at `index` as JSON: a number, string, boolean, nil, or a list of these. Error (usage):
/// what it is instead, "a function", "a table inside a list".
Result<Json> setting_at(lua_State* state, int index);

/// Lua data as JSON: tables with keys 1…n are lists, others objects. Throws ScriptError where it is nested
/// deeper than 32 levels (or in a circle) or has more than 100,000 entries. Functions become their text.
Json json_at(lua_State* state, int index);

/// Named arguments of a function, as json_at() gave them. Throws ScriptError for one that isn't among
/// `known`, with the nearest.
void check_arguments(const Json& arguments, const std::vector<std::string>& known,
                     const std::string& function);

/// A value for people: strings as they are, tables on several lines once they are long. At most 256 KiB,
/// the cut is said. May run a script's __tostring, so call it where the hook and pcall are in force.
std::string render(lua_State* state, int index);

}  // namespace footplate::lua
