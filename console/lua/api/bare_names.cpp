#include <string>

#include "console/lua/api/api.h"
#include "console/lua/api/catalogue.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/settings_table.h"
#include "console/lua/session/session.h"

// What a function shows where it is written without a call: a line of help, and how it is called.

namespace footplate::lua {
namespace {

/// Its name among those of the table at `names`, or of the libraries in there; empty: it has none.
std::string lua_name(lua_State* state, int function, int names, const std::string& prefix) {
  luaL_checkstack(state, 8, nullptr);
  std::string found;
  for (lua_pushnil(state); lua_next(state, names) != 0; lua_pop(state, 1)) {
    if (!found.empty() || lua_type(state, -2) != LUA_TSTRING) continue;
    const std::string name = prefix + lua_tostring(state, -2);
    if (lua_rawequal(state, -1, function) != 0) {
      found = name;
    } else if (prefix.empty() && lua_istable(state, -1) && name != "_G") {
      // A library is there as a view of its table.
      const int view = luaL_getmetafield(state, -1, "__index");
      if (view == LUA_TTABLE) found = lua_name(state, function, lua_gettop(state), name + ".");
      if (view != LUA_TNIL) lua_pop(state, 1);
    }
  }
  return found;
}

std::string text_of_lua(lua_State* state) {
  lua_getfield(state, LUA_REGISTRYINDEX, kOwnNames);
  const std::string name = lua_istable(state, -1) ? lua_name(state, 1, lua_gettop(state), "") : "";
  lua_pop(state, 1);
  return (name.empty() ? "a function" : name + "(…): a function") + " of Lua 5.4";
}

/// "f(a, b): a function of chunk, line 3"; its name isn't known to it.
std::string text_of_script(lua_State* state) {
  lua_Debug info{};
  lua_pushvalue(state, 1);
  lua_getinfo(state, ">Su", &info);
  std::string parameters;
  lua_pushvalue(state, 1);
  for (int i = 1; i <= info.nparams; ++i) {
    const char* name = lua_getlocal(state, nullptr, i);
    parameters += (i > 1 ? ", " : "") + std::string(name == nullptr ? "?" : name);
  }
  lua_pop(state, 1);
  if (info.isvararg != 0) parameters += parameters.empty() ? "…" : ", …";
  return "function(" + parameters + "), line " + std::to_string(info.linedefined) + " of " + info.short_src;
}

std::string function_text(lua_State* state) {
  const lua_CFunction function = lua_tocfunction(state, 1);
  if (function == nullptr) return text_of_script(state);
  if (const std::string name = action_called(state, 1); !name.empty()) {
    const ActionSpec& action = *session_of(state).schema().action(name);
    return (action.example.empty() ? name + "()" : action.example) + ": " + action.help;
  }
  if (const auto group = group_of_set(state, 1))
    return *group + (group->empty() ? "" : ".") + "set{ NAME = VALUE }: settings together or not at all";
  for (const Registration& registration : catalogue())
    if (registration.form == Form::function && registration.handler == function)
      return registration.doc.line();
  return text_of_lua(state);
}

int push_function_text(lua_State* state) {
  push_text(state, function_text(state));
  return 1;
}

int push_thread_text(lua_State* state) {
  lua_State* const thread = lua_tothread(state, 1);
  const bool waits = thread != nullptr && lua_status(thread) == LUA_YIELD;
  push_text(state, waits ? "a coroutine that waits for coroutine.resume" : "a coroutine");
  return 1;
}

/// settings.zzz, where settings("zzz") is meant.
int refuse_field(lua_State* state) {
  const lua_CFunction function = lua_tocfunction(state, 1);
  const std::string key = lua_type(state, 2) == LUA_TSTRING ? lua_tostring(state, 2) : "";
  for (const Registration& registration : catalogue())
    if (function != nullptr && registration.form == Form::function && registration.handler == function) {
      const std::string name(registration.doc.name);
      throw ScriptError(name + " is a function, and has no field '" + key + "'; call it, " + name + "(\"" +
                        key + "\")");
    }
  throw ScriptError("a function has no field '" + key + "'");
}

/// All values of the type of the one on top of the stack, which is popped, show what `text` pushes; `field`:
/// what happens where a field of one is asked for, null: Lua's own error.
void set_type_text(lua_State* state, lua_CFunction text, lua_CFunction field) {
  lua_createtable(state, 0, 3);
  lua_pushcfunction(state, text);
  lua_setfield(state, -2, "__tostring");
  if (field != nullptr) {
    lua_pushcfunction(state, field);
    lua_setfield(state, -2, "__index");
  }
  lock_metatable(state);
  lua_setmetatable(state, -2);
  lua_pop(state, 1);
}

}  // namespace

void open_function_texts(lua_State* state) {
  lua_pushcfunction(state, bound<push_function_text>);
  set_type_text(state, bound<push_function_text>, bound<refuse_field>);
  lua_pushthread(state);
  set_type_text(state, bound<push_thread_text>, nullptr);
}

}  // namespace footplate::lua
