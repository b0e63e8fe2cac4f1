#pragma once

#include <lua.hpp>

#include "protocol/json.h"
#include "protocol/value.h"

namespace footplate {

/// The Lua value at `index` as JSON: numbers, strings, booleans, nil and lists of them. Error: a function, or
/// a table that isn't a list; the message says what it is.
Result<Json> json_from_lua(lua_State* lua, int index);

/// Pushes the value of a setting. A list is a fresh table: changing it changes no setting.
void push_value(lua_State* lua, const Value& value);

}  // namespace footplate
