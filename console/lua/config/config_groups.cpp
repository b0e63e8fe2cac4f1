#include "console/lua/config/config_groups.h"

#include <new>

#include "console/lua/config/binding.h"
#include "console/lua/config/config.h"
#include "console/lua/config/values.h"
#include "console/network/preset.h"

namespace footplate {
namespace {

// A group is a userdata that holds its prefix: "" for the global names, "train." for train.
constexpr const char* kGroupType = "footplate.group";
constexpr int kDeepestSet = 4;  ///< tables in tables that set{} follows; names have two or three parts

ConfigTarget& target_of(lua_State* lua) {
  return *static_cast<ConfigTarget*>(lua_touserdata(lua, lua_upvalueindex(1)));
}

const std::string& prefix_at(lua_State* lua, int index) {
  return *static_cast<std::string*>(luaL_checkudata(lua, index, kGroupType));
}

/// A name as written in `a.b` or in a table of set{}.
std::string key_at(lua_State* lua, int index, const std::string& prefix) {
  if (lua_type(lua, index) != LUA_TSTRING)
    throw Refused("names of settings are words, got a " + std::string(luaL_typename(lua, index)) +
                  (prefix.empty() ? "" : " in " + prefix.substr(0, prefix.size() - 1)));
  return prefix + lua_tostring(lua, index);
}

bool is_group(const Schema& schema, const std::string& name) {
  const std::string prefix = name + ".";
  for (const auto& spec : schema.settings)
    if (spec.name.compare(0, prefix.size(), prefix) == 0) return true;
  for (const auto& spec : schema.actions)
    if (spec.name.compare(0, prefix.size(), prefix) == 0) return true;
  return false;
}

/// The name itself is in the message as the user wrote it; a word without a dot may be a group or a local.
std::string unknown_name(const Schema& schema, const std::string& name) {
  if (schema.action(name) != nullptr)
    return name +
           " is an action; a config only assigns settings, actions belong at the prompt or in a job script";
  if (name.find('.') != std::string::npos || schema.knows_variable(name)) return schema.unknown_setting(name);
  std::vector<std::string> groups;
  for (const auto& spec : schema.settings) groups.push_back(spec.name.substr(0, spec.name.find('.')));
  if (const std::string near = nearest(name, groups); !near.empty())
    return "unknown name '" + name + "'; did you mean " + near + "?";
  return schema.unknown_setting(name) + "; a name of your own needs 'local " + name + " = …'";
}

int current_line(lua_State* lua) {
  lua_Debug activation;
  for (int level = 1; lua_getstack(lua, level, &activation) != 0; ++level) {
    lua_getinfo(lua, "l", &activation);
    if (activation.currentline > 0) return activation.currentline;
  }
  return 0;
}

void assign(lua_State* lua, const std::string& name, int index) {
  ConfigTarget& target = target_of(lua);
  const SettingSpec* spec = target.schema.setting(name);
  if (spec == nullptr) {
    if (is_group(target.schema, name))
      throw Refused(name + " is a group of settings and can't be assigned; write " + name + ".set{ … } or " +
                    name + ".NAME = …");
    throw Refused(unknown_name(target.schema, name));
  }
  auto json = json_from_lua(lua, index);
  if (!json) throw Refused(name + " can't be " + json.error().message + "; allowed: " + allowed(*spec));
  auto value = check_config_value(target.schema, name, *json);
  if (!value) throw Refused(value.error().message);
  target.settings.set(name, *std::move(value), target.shown_as + ":" + std::to_string(current_line(lua)));
}

/// Assigns the fields of the table at `index`; tables inside are groups. Values stay in `fields`' order of
/// Lua, which doesn't matter: no name occurs twice.
void assign_fields(lua_State* lua, const std::string& prefix, int index, int depth) {
  const Schema& schema = target_of(lua).schema;
  index = lua_absindex(lua, index);
  luaL_checkstack(lua, 4, nullptr);
  lua_pushnil(lua);
  while (lua_next(lua, index) != 0) {
    const std::string name = key_at(lua, -2, prefix);
    if (lua_istable(lua, -1) && schema.setting(name) == nullptr && is_group(schema, name) &&
        depth < kDeepestSet)
      assign_fields(lua, name + ".", -1, depth + 1);
    else
      assign(lua, name, -1);
    lua_pop(lua, 1);
  }
}

void push_group(lua_State* lua, const std::string& prefix) {
  new (lua_newuserdatauv(lua, sizeof(std::string), 0)) std::string(prefix);
  luaL_setmetatable(lua, kGroupType);
}

int set_fields(lua_State* lua) {
  const std::string prefix = lua_tostring(lua, lua_upvalueindex(2));
  if (!lua_istable(lua, 1))
    throw Refused((prefix.empty() ? "set" : prefix + "set") + " takes a table: " +
                  (prefix.empty() ? "set{ train = { steps = 100 } }" : prefix + "set{ NAME = VALUE }"));
  assign_fields(lua, prefix, 1, 0);
  return 0;
}

int read_field(lua_State* lua);
int write_field(lua_State* lua);

void push_set(lua_State* lua, const std::string& prefix) {
  lua_pushlightuserdata(lua, &target_of(lua));
  lua_pushlstring(lua, prefix.data(), prefix.size());
  lua_pushcclosure(lua, &guarded<set_fields>, 2);
}

/// nccl.preset("ethernet"): assigns what nothing has assigned before.
int set_preset(lua_State* lua) {
  ConfigTarget& target = target_of(lua);
  if (lua_type(lua, 1) != LUA_TSTRING) throw Refused("nccl.preset takes a name: nccl.preset(\"ethernet\")");
  const auto preset = nccl_preset(lua_tostring(lua, 1), read_network("/"), [&](const std::string& setting) {
    return target.settings.source(setting) != "default";
  });
  if (!preset) throw Refused(preset.error().message);
  for (const auto& change : preset->changes) {
    auto value = check_config_value(target.schema, change.name, change.value);
    if (!value) throw Refused(value.error().message);
    target.settings.set(change.name, *std::move(value),
                        target.shown_as + ":" + std::to_string(current_line(lua)));
  }
  return 0;
}

int read_name(lua_State* lua, const std::string& prefix) {
  ConfigTarget& target = target_of(lua);
  const std::string name = key_at(lua, 2, prefix);
  if (target.schema.setting(name) != nullptr)
    push_value(lua, target.settings.value(name));
  else if (name == prefix + "set")
    push_set(lua, prefix);
  else if (name == "nccl.preset" && is_group(target.schema, "nccl"))
    lua_pushlightuserdata(lua, &target), lua_pushcclosure(lua, &guarded<set_preset>, 1);
  else if (is_group(target.schema, name))
    push_group(lua, name + ".");
  else
    throw Refused(unknown_name(target.schema, name));
  return 1;
}

int read_field(lua_State* lua) {
  return read_name(lua, prefix_at(lua, 1));
}

int write_field(lua_State* lua) {
  assign(lua, key_at(lua, 2, prefix_at(lua, 1)), 3);
  return 0;
}

int read_global(lua_State* lua) {
  return read_name(lua, "");
}

int write_global(lua_State* lua) {
  assign(lua, key_at(lua, 2, ""), 3);
  return 0;
}

}  // namespace

void install_groups(lua_State* lua, ConfigTarget& target) {
  luaL_newmetatable(lua, kGroupType);
  set_method(lua, &target, "__index", &guarded<read_field>);
  set_method(lua, &target, "__newindex", &guarded<write_field>);
  lua_pushcfunction(lua, end_string);
  lua_setfield(lua, -2, "__gc");
  lua_pop(lua, 1);

  lua_pushglobaltable(lua);
  lua_newtable(lua);
  set_method(lua, &target, "__index", &guarded<read_global>);
  set_method(lua, &target, "__newindex", &guarded<write_global>);
  lua_setmetatable(lua, -2);
  lua_pop(lua, 1);
}

}  // namespace footplate
