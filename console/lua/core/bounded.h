#pragma once

#include <lua.hpp>

namespace footplate::lua {

/// Replaces functions of the `string` and `table` libraries, which lie at these stack indices, by ones
/// whose work is bounded before it starts: inside a C function no hook runs, only SIGKILL would help.
void bound_string_library(lua_State* state, int library);
void bound_table_library(lua_State* state, int library);

}  // namespace footplate::lua
