#pragma once

#include <lua.hpp>

namespace footplate::lua {

/// What a session of footplate-lua has (docs/lua.md): an OpenNames of session.h.
void open_names(lua_State* state, int own, int environment);

}  // namespace footplate::lua
