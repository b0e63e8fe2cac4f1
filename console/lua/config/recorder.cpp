#include "console/lua/config/recorder.h"

#include <new>
#include <string>

#include "console/lua/config/binding.h"
#include "console/lua/config/config.h"
#include "console/lua/config/values.h"

namespace footplate {
namespace {

constexpr const char* kGroupType = "footplate.recorded";
constexpr int kDeepestSet = 4;

RecorderTarget& target_of(lua_State* lua) {
  return *static_cast<RecorderTarget*>(lua_touserdata(lua, lua_upvalueindex(1)));
}

Json json_at(lua_State* lua, int index, const std::string& name) {
  auto json = json_from_lua(lua, index);
  if (!json) throw Refused(name + " can't be " + json.error().message);
  return *std::move(json);
}

std::string key_at(lua_State* lua, int index) {
  if (lua_type(lua, index) != LUA_TSTRING) throw Refused("names are words");
  return lua_tostring(lua, index);
}

/// The changes in the table at `index`; a table that is no setting's value is a group.
void read_changes(lua_State* lua, int index, const std::string& prefix, int depth, Order& order) {
  const Schema& schema = target_of(lua).schema;
  index = lua_absindex(lua, index);
  luaL_checkstack(lua, 4, nullptr);
  lua_pushnil(lua);
  while (lua_next(lua, index) != 0) {
    const std::string name = prefix + key_at(lua, -2);
    if (lua_istable(lua, -1) && schema.setting(name) == nullptr && depth < kDeepestSet) {
      read_changes(lua, -1, name + ".", depth + 1, order);
    } else {
      auto value = check_config_value(schema, name, json_at(lua, -1, name));
      if (!value) throw Refused(value.error().message);
      order.changes.push_back({name, *std::move(value), std::nullopt});
    }
    lua_pop(lua, 1);
  }
}

Order& recorded(lua_State* lua, const std::string& word) {
  RecorderTarget& target = target_of(lua);
  if (!target.recording) throw Refused(word + " stands outside of at(STEP, function() … end)");
  return target.orders.back();
}

int set(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  read_changes(lua, 1, "", 0, recorded(lua, "set"));
  return 0;
}

/// Called as ckpt.save{ tag = "x" } or ckpt.save(); the action's name is the second upvalue.
int call_action(lua_State* lua) {
  const std::string name = lua_tostring(lua, lua_upvalueindex(2));
  Call call{name, Json::object()};
  if (lua_istable(lua, 1)) {
    lua_pushnil(lua);
    while (lua_next(lua, 1) != 0) {
      const std::string key = key_at(lua, -2);
      call.arguments[key] = json_at(lua, -1, name + "'s " + key);
      lua_pop(lua, 1);
    }
  }
  auto arguments = target_of(lua).schema.check_arguments(name, call.arguments);
  if (!arguments) throw Refused(arguments.error().message);
  call.arguments = *std::move(arguments);
  recorded(lua, name).calls.push_back(std::move(call));
  return 0;
}

int read_field(lua_State* lua) {
  const auto& prefix = *static_cast<std::string*>(luaL_checkudata(lua, 1, kGroupType));
  const std::string name = prefix + key_at(lua, 2);
  RecorderTarget& target = target_of(lua);
  if (target.schema.action(name) == nullptr) throw Refused(target.schema.unknown_action(name));
  lua_pushlightuserdata(lua, &target);
  lua_pushlstring(lua, name.data(), name.size());
  lua_pushcclosure(lua, &guarded<call_action>, 2);
  return 1;
}

int read_global(lua_State* lua) {
  const std::string prefix = key_at(lua, 2) + ".";
  for (const auto& spec : target_of(lua).schema.actions)
    if (spec.name.compare(0, prefix.size(), prefix) == 0) {
      new (lua_newuserdatauv(lua, sizeof(std::string), 0)) std::string(prefix);
      luaL_setmetatable(lua, kGroupType);
      return 1;
    }
  throw Refused("unknown name '" + key_at(lua, 2) + "' in a journal");
}

int line_of_caller(lua_State* lua) {
  lua_Debug activation;
  if (lua_getstack(lua, 1, &activation) == 0 || lua_getinfo(lua, "l", &activation) == 0) return 0;
  return activation.currentline;
}

int at(lua_State* lua) {
  RecorderTarget& target = target_of(lua);
  if (target.recording) throw Refused("at() inside of at()");
  Order order;
  order.at_step = luaL_checkinteger(lua, 1);
  target.orders.push_back(std::move(order));
  target.lines.push_back(line_of_caller(lua));
  if (lua_istable(lua, 2)) {
    read_changes(lua, 2, "", 0, target.orders.back());
    return 0;
  }
  luaL_checktype(lua, 2, LUA_TFUNCTION);
  target.recording = true;
  lua_pushvalue(lua, 2);
  lua_call(lua, 0, 0);  // an error ends the whole reading
  target.recording = false;
  return 0;
}

}  // namespace

void install_recorder(lua_State* lua, RecorderTarget& target) {
  luaL_newmetatable(lua, kGroupType);
  set_method(lua, &target, "__index", &guarded<read_field>);
  lua_pushcfunction(lua, end_string);
  lua_setfield(lua, -2, "__gc");
  lua_pop(lua, 1);

  lua_pushglobaltable(lua);
  set_method(lua, &target, "at", &guarded<at>);
  set_method(lua, &target, "set", &guarded<set>);
  lua_newtable(lua);
  set_method(lua, &target, "__index", &guarded<read_global>);
  lua_setmetatable(lua, -2);
  lua_pop(lua, 1);
}

}  // namespace footplate
