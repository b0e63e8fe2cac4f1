#include "console/lua/core/settings_table.h"

#include <algorithm>
#include <new>

#include "console/lua/core/bind.h"

namespace footplate::lua {
namespace {

constexpr const char* kGroupType = "footplate.group";
constexpr const char* kTargetType = "footplate.settings";
constexpr const char* kTarget = "footplate.target";  ///< the registry's key of the state's target

using Target = std::unique_ptr<SettingsTarget>;

std::string type_text(const std::string& group, const std::string& type) {
  return "names of settings are words, got a " + type + (group.empty() ? "" : " in " + group);
}

std::string full_name(const std::string& group, const std::string& key) {
  return group.empty() ? key : group + "." + key;
}

int call_set(lua_State* state) {
  settings_target(state).set(state, lua_tostring(state, lua_upvalueindex(1)));
  return 0;
}

std::string field_at(lua_State* state, int index, const std::string& group) {
  if (lua_type(state, index) != LUA_TSTRING) throw ScriptError(type_text(group, luaL_typename(state, index)));
  return string_argument(state, index);
}

int read(lua_State* state, const std::string& group) {
  SettingsTarget& target = settings_target(state);
  const std::string key = field_at(state, 2, group);
  const std::string name = full_name(group, key);
  // nccl.preset is both: called it is the function, assigned the setting.
  if (target.push_member(state, name)) {
  } else if (target.schema().setting(name) != nullptr) {
    target.push_setting(state, name);
  } else if (key == "set") {
    lua_pushlstring(state, group.data(), group.size());
    lua_pushcclosure(state, bound<call_set>, 1);
  } else if (is_group(target.schema(), name)) {
    push_group(state, name);
  } else {
    throw ScriptError(target.unknown_member(name));
  }
  return 1;
}

int read_field(lua_State* state) {
  return read(state, group_at(state, 1));
}

int write_field(lua_State* state) {
  const std::string group = group_at(state, 1);
  settings_target(state).assign(state, full_name(group, field_at(state, 2, group)), 3);
  return 0;
}

int read_global(lua_State* state) {
  return read(state, "");
}

int write_global(lua_State* state) {
  settings_target(state).assign(state, field_at(state, 2, ""), 3);
  return 0;
}

int end_target(lua_State* state) {
  static_cast<Target*>(lua_touserdata(state, 1))->~Target();
  return 0;
}

void walk(lua_State* state, int table, const std::string& group, int depth,
          const std::function<void(const std::string&, int)>& use) {
  const SettingsTarget& target = settings_target(state);
  luaL_checkstack(state, 12, "set{} nested too deeply");
  for (lua_pushnil(state); lua_next(state, table) != 0; lua_pop(state, 1)) {
    if (lua_type(state, -2) != LUA_TSTRING)
      throw ScriptError(target.refused_key(group, luaL_typename(state, -2)));
    const std::string name = full_name(group, string_argument(state, -2));
    if (lua_istable(state, -1) && target.has_fields(state, name, depth))
      walk(state, lua_gettop(state), name, depth + 1, use);
    else
      use(name, depth);
  }
}

}  // namespace

std::string SettingsTarget::refused_key(const std::string& group, const std::string& type) const {
  return type_text(group, type);
}

void open_settings(lua_State* state, std::unique_ptr<SettingsTarget> target, const luaL_Reg* methods) {
  constexpr luaL_Reg kTargetMethods[] = {{"__gc", end_target}, {nullptr, nullptr}};
  add_locked_type(state, kTargetType, kTargetMethods);
  new (lua_newuserdatauv(state, sizeof(Target), 0)) Target(std::move(target));
  luaL_setmetatable(state, kTargetType);
  lua_setfield(state, LUA_REGISTRYINDEX, kTarget);

  constexpr luaL_Reg kMethods[] = {
      {"__index", bound<read_field>}, {"__newindex", bound<write_field>}, {nullptr, nullptr}};
  luaL_newmetatable(state, kGroupType);
  luaL_setfuncs(state, kMethods, 0);
  if (methods != nullptr) luaL_setfuncs(state, methods, 0);
  lock_metatable(state);
  lua_pop(state, 1);
}

SettingsTarget& settings_target(lua_State* state) {
  lua_getfield(state, LUA_REGISTRYINDEX, kTarget);
  SettingsTarget& target = **static_cast<Target*>(lua_touserdata(state, -1));
  lua_pop(state, 1);
  return target;
}

void settings_as_globals(lua_State* state) {
  constexpr luaL_Reg kMethods[] = {
      {"__index", bound<read_global>}, {"__newindex", bound<write_global>}, {nullptr, nullptr}};
  lua_pushglobaltable(state);
  luaL_newlib(state, kMethods);
  lua_setmetatable(state, -2);
  lua_pop(state, 1);
}

void push_group(lua_State* state, const std::string& group) {
  lua_newuserdatauv(state, 0, 1);
  lua_pushlstring(state, group.data(), group.size());
  lua_setiuservalue(state, -2, 1);
  luaL_setmetatable(state, kGroupType);
}

std::string group_at(lua_State* state, int index) {
  luaL_checkudata(state, index, kGroupType);
  lua_getiuservalue(state, index, 1);
  std::string group = lua_tostring(state, -1);
  lua_pop(state, 1);
  return group;
}

std::optional<std::string> group_of_set(lua_State* state, int index) {
  if (lua_tocfunction(state, index) != static_cast<lua_CFunction>(bound<call_set>)) return std::nullopt;
  lua_getupvalue(state, index, 1);
  std::string group = lua_tostring(state, -1);
  lua_pop(state, 1);
  return group;
}

bool is_group(const Schema& schema, const std::string& name) {
  const auto within = [prefix = name + "."](const auto& spec) { return spec.name.starts_with(prefix); };
  return std::ranges::any_of(schema.settings, within) || std::ranges::any_of(schema.actions, within);
}

void for_each_setting(lua_State* state, int table, const std::string& group,
                      const std::function<void(const std::string& name, int depth)>& use) {
  walk(state, lua_absindex(state, table), group, 0, use);
}

}  // namespace footplate::lua
