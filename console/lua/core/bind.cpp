#include "console/lua/core/bind.h"

#include "protocol/schema.h"

namespace footplate::lua {

void StateOwner::remember_error(const std::string& /*message*/, ErrorKind /*kind*/) {}

std::string StateOwner::unknown_name(const std::string& name, const std::vector<std::string>& known) const {
  const std::string near = nearest(name, known);
  return "unknown name '" + name + "'" + (near.empty() ? "" : "; did you mean " + near + "?");
}

std::string StateOwner::refused_variable(const std::string& /*name*/) const {
  return {};
}

void set_owner(lua_State* state, StateOwner& owner) {
  *static_cast<StateOwner**>(lua_getextraspace(state)) = &owner;
}

StateOwner& owner_of(lua_State* state) {
  return **static_cast<StateOwner**>(lua_getextraspace(state));
}

void push_error(lua_State* state, const std::exception& error) {
  const auto* script = dynamic_cast<const ScriptError*>(&error);
  owner_of(state).remember_error(error.what(), script == nullptr ? ErrorKind::script : script->kind);
  luaL_where(state, 1);
  lua_pushstring(state, error.what());
  lua_concat(state, 2);
}

std::string string_argument(lua_State* state, int index) {
  std::size_t size = 0;
  const char* text = luaL_checklstring(state, index, &size);
  return {text, size};
}

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

void push_locked_object(lua_State* state, const luaL_Reg* methods) {
  lua_newuserdatauv(state, 0, 0);
  lua_newtable(state);
  luaL_setfuncs(state, methods, 0);
  lock_metatable(state);
  lua_setmetatable(state, -2);
}

}  // namespace footplate::lua
