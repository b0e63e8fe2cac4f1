#include "console/lua/core/bind.h"

namespace footplate::lua {

void lock_metatable(lua_State* state) {
  lua_pushliteral(state, "locked");
  lua_setfield(state, -2, "__metatable");
}

void add_locked_type(lua_State* state, const char* type, const luaL_Reg* methods) {
  luaL_newmetatable(state, type);
  luaL_setfuncs(state, methods, 0);
  lock_metatable(state);
  lua_pop(state, 1);
}

void add_locked_object(lua_State* state, int own, const char* name, const luaL_Reg* methods) {
  lua_newuserdatauv(state, 0, 0);
  lua_newtable(state);
  luaL_setfuncs(state, methods, 0);
  lock_metatable(state);
  lua_setmetatable(state, -2);
  lua_setfield(state, own, name);
}

}  // namespace footplate::lua
