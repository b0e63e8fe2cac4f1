#pragma once

#include <lua.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "protocol/result.h"

namespace footplate::lua {

/// Thrown by bindings; becomes a Lua error with the line of the chunk, and keeps its kind.
struct ScriptError : std::runtime_error {
  explicit ScriptError(const std::string& message, ErrorKind error_kind = ErrorKind::script)
      : std::runtime_error(message), kind(error_kind) {}
  explicit ScriptError(const Error& error) : ScriptError(error.message, error.kind) {}
  ErrorKind kind;
};

/// What a Lua state belongs to: a session, or a config that is read. Outlives the state; one thread.
class StateOwner {
 public:
  /// A binding has failed, with this message and of this kind.
  virtual void remember_error(const std::string& message, ErrorKind kind);

  /// The message for a global name that is read and isn't among `known`.
  virtual std::string unknown_name(const std::string& name, const std::vector<std::string>& known) const;

  /// Why no global variable can have this name; empty: one can.
  virtual std::string refused_variable(const std::string& name) const;

 protected:
  ~StateOwner() = default;
};

/// Call before a coroutine is made: each has the owner of the state that makes it.
void set_owner(lua_State* state, StateOwner& owner);
StateOwner& owner_of(lua_State* state);

/// Pushes the message of `error` with the chunk's line before it.
void push_error(lua_State* state, const std::exception& error);

/// The one boundary between C++ exceptions and Lua errors: every binding is registered as bound<f>.
/// Lua's own errors are C++ exceptions of a type that isn't std::exception (this is the library built
/// as C++), pass through, and run destructors on their way.
template <int (*f)(lua_State*)>
int bound(lua_State* state) {
  try {
    return f(state);
  } catch (const std::exception& error) {
    push_error(state, error);
  }
  return lua_error(state);
}

/// An argument as text; an error that names the function otherwise.
std::string string_argument(lua_State* state, int index);

/// No script gets hold of the metatable on top of the stack.
void lock_metatable(lua_State* state);

/// A locked metatable for luaL_setmetatable(type). `methods` ends with a null name, as for luaL_setfuncs.
void add_locked_type(lua_State* state, const char* type, const luaL_Reg* methods);

/// Pushes an object without content, whose behaviour is its locked metatable.
void push_locked_object(lua_State* state, const luaL_Reg* methods);

}  // namespace footplate::lua
