#include <array>

#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/session/session.h"

// What a job script has besides: the owner named it on the command line, so it may do what the owner may.

namespace footplate::lua {
namespace {

int refuse_exit(lua_State*) {
  throw ScriptError("a job script ends by return; run.stop() ends the run");
}

int do_nothing(lua_State* state) {
  lua_pushboolean(state, 1);
  return 1;
}

/// footplate check: files are read, and written nowhere. Upvalue: Lua's own io.open.
int open_for_reading(lua_State* state) {
  const std::string mode = luaL_optstring(state, 2, "r");
  lua_settop(state, 1);
  if (mode.find_first_of("wa+") != std::string::npos) {
    lua_pushliteral(state, "/dev/null");
    lua_replace(state, 1);
  }
  lua_pushstring(state, mode.c_str());
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, 2, LUA_MULTRET);
  return lua_gettop(state);
}

/// footplate check: a file that takes everything and has nothing. Upvalue: Lua's own io.open.
int open_nothing(lua_State* state) {
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_pushliteral(state, "/dev/null");
  lua_pushliteral(state, "r+");
  lua_call(state, 2, 1);
  return 1;
}

void replace_functions(lua_State* state, int library, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    lua_pushcfunction(state, do_nothing);
    lua_setfield(state, library, name);
  }
}

}  // namespace

void open_trusted(lua_State* state, int own, int environment) {
  const Greeting& greeting = session_of(state).greeting();
  luaL_requiref(state, "io", luaopen_io, 0);
  const int io = lua_gettop(state);
  luaL_requiref(state, "os", luaopen_os, 0);
  const int os = lua_gettop(state);
  lua_pushcfunction(state, bound<refuse_exit>);
  lua_setfield(state, os, "exit");
  if (greeting.kind == SessionKind::check) {
    for (const char* name : {"popen", "output"}) {
      lua_getfield(state, io, "open");
      lua_pushcclosure(state, open_nothing, 1);
      lua_setfield(state, io, name);
    }
    lua_getfield(state, io, "open");
    lua_pushcclosure(state, open_for_reading, 1);
    lua_setfield(state, io, "open");
    replace_functions(state, os, {"execute", "remove", "rename"});
  }
  lua_setfield(state, own, "os");
  lua_setfield(state, own, "io");
  lua_createtable(state, static_cast<int>(greeting.arguments.size()), 1);
  for (std::size_t i = 0; i < greeting.arguments.size(); ++i) {
    lua_pushstring(state, greeting.arguments[i].c_str());
    lua_rawseti(state, -2, static_cast<lua_Integer>(i) + 1);
  }
  lua_pushstring(state, (greeting.script.empty() ? greeting.session : greeting.script).c_str());
  lua_rawseti(state, -2, 0);
  lua_pushliteral(state, "arg");
  lua_insert(state, -2);
  lua_rawset(state, environment);
}

}  // namespace footplate::lua
