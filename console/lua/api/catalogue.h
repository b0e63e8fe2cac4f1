#pragma once

#include <lua.hpp>
#include <string_view>
#include <vector>

#include "console/lua/session/registration.h"

namespace footplate::lua {

/// All registrations, in the order in which help() lists them.
std::vector<Registration> catalogue();

/// What people read about them.
std::vector<FunctionDoc> catalogue_docs();

/// The one of that name; null: none.
const Registration* find_registration(std::string_view name);

/// Pushes what a script gets for it.
void push_registered(lua_State* state, const Registration& registration);

/// What a session of footplate-lua has (docs/lua.md): an OpenNames of session.h.
void open_names(lua_State* state, int own, int environment);

}  // namespace footplate::lua
