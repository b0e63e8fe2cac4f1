#pragma once

#include <exception>
#include <lua.hpp>
#include <stdexcept>
#include <string>

// What the C++ functions that a config or a journal calls have in common.

namespace footplate {

/// Raised as a Lua error by `guarded`, with the position of the file's line.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Every binding goes through here: a C++ exception that left it would reach Lua without a message.
template <int (*function)(lua_State*)>
int guarded(lua_State* lua) {
  std::string message;
  try {
    return function(lua);
  } catch (const std::exception& error) {
    message = error.what();
  }
  luaL_where(lua, 1);
  lua_pushlstring(lua, message.data(), message.size());
  lua_concat(lua, 2);
  return lua_error(lua);  // unwinds: this Lua is built as C++
}

/// The `__gc` of a userdata that holds a std::string.
inline int end_string(lua_State* lua) {
  static_cast<std::string*>(lua_touserdata(lua, 1))->~basic_string();
  return 0;
}

/// Sets `name` in the table on top of the stack to `function`, whose first upvalue is `target`.
inline void set_method(lua_State* lua, void* target, const char* name, lua_CFunction function) {
  lua_pushlightuserdata(lua, target);
  lua_pushcclosure(lua, function, 1);
  lua_setfield(lua, -2, name);
}

}  // namespace footplate
