#pragma once

#include <lua.hpp>
#include <span>

namespace footplate::lua {

/// A library of Lua's, and those of its functions that scripts may use.
struct AllowedLibrary {
  const char* name;
  lua_CFunction open;
  std::span<const char* const> functions;
  void (*bound)(lua_State* state, int library);  ///< replaces functions by bounded ones; null: none
};

/// Copies these functions of Lua's base library into the table at `target`. Lua's own global table, which is
/// filled on the way, isn't for scripts.
void add_base(lua_State* state, int target, std::span<const char* const> functions);

/// Puts the libraries with what is allowed of them into the table at `target`, as they are or as views that
/// can't be written to. Strings have those methods that are allowed of `string`.
void add_libraries(lua_State* state, int target, std::span<const AllowedLibrary> libraries, bool read_only);

/// Leaves the environment that chunks run in on top of the stack: an allow-list of Lua's libraries with
/// bounded functions in place of those that a count hook can't interrupt (docs/lua.md, "Limits"). `own`
/// is the stack index of a table with footplate's own names; a script can read but not replace them.
void push_environment(lua_State* state, int own);

/// Another environment with the same names and variables of its own.
void push_environment_like(lua_State* state, int own);

}  // namespace footplate::lua
