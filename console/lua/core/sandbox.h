#pragma once

#include <lua.hpp>

namespace footplate::lua {

/// Leaves the environment that chunks run in on top of the stack: an allow-list of Lua's libraries with
/// bounded functions in place of those that a count hook can't interrupt (docs/lua.md, "Limits"). `own`
/// is the stack index of a table with footplate's own names; a script can read but not replace them.
void push_environment(lua_State* state, int own);

/// Another environment with the same names and variables of its own.
void push_environment_like(lua_State* state, int own);

}  // namespace footplate::lua
