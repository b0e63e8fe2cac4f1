#include "console/lua/config/recorder.h"

#include <string>

#include "console/lua/config/config.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/settings_table.h"
#include "protocol/gone_settings.h"

namespace footplate {
namespace {

constexpr const char* kTask = "task";

int call_action(lua_State* state);
int at(lua_State* state);

Json json_at(lua_State* state, int index, const std::string& name) {
  auto json = lua::setting_at(state, index);
  if (!json) throw lua::ScriptError(name + " can't be " + json.error().message);
  return *std::move(json);
}

int line_of_caller(lua_State* state) {
  lua_Debug activation;
  if (lua_getstack(state, 1, &activation) == 0 || lua_getinfo(state, "l", &activation) == 0) return 0;
  return activation.currentline;
}

/// The orders that a journal's at() records. Nothing can be read, and what is assigned is a change of the
/// last order.
class RecordedSettings final : public lua::SettingsTarget {
 public:
  explicit RecordedSettings(Recording& recording) : recording_(recording) {}

  const Schema& schema() const override { return recording_.schema; }

  void push_setting(lua_State*, const std::string& name) override {
    throw lua::ScriptError(schema().unknown_action(name));
  }

  void assign(lua_State* state, const std::string& name, int value) override {
    Order& order = order_for(name);
    if (is_gone(schema(), name)) return leave_out(name, json_at(state, value, name));
    auto checked = check_config_value(schema(), name, json_at(state, value, name));
    if (!checked) throw lua::ScriptError(checked.error());
    order.changes.push_back({name, *std::move(checked), std::nullopt});
  }

  void set(lua_State* state, const std::string& group) override {
    luaL_checktype(state, 1, LUA_TTABLE);
    order_for("set");
    read_changes(state, 1, group);
  }

  /// Called as ckpt.save{ tag = "x" } or ckpt.save().
  bool push_member(lua_State* state, const std::string& name) override {
    if (name == kTask) {  // also where the task declares nothing any more
      lua::push_group(state, name);
      return true;
    }
    if (schema().action(name) == nullptr && !is_gone(schema(), name)) return false;
    lua_pushlstring(state, name.data(), name.size());
    lua_pushcclosure(state, lua::bound<call_action>, 1);
    return true;
  }

  std::string unknown_member(const std::string& name) const override {
    if (name.find('.') != std::string::npos) return schema().unknown_action(name);
    return "unknown name '" + name + "' in a journal";
  }

  /// A table that is no setting's value is a group.
  bool has_fields(lua_State*, const std::string& name, int depth) const override {
    return schema().setting(name) == nullptr && depth < lua::kDeepestSet;
  }

  std::string refused_key(const std::string&, const std::string&) const override { return "names are words"; }

  void call(const std::string& name, const Json& given) {
    Order& order = order_for(name);
    if (is_gone(schema(), name)) return leave_out(name, std::nullopt);
    auto arguments = schema().check_arguments(name, given);
    if (!arguments) throw lua::ScriptError(arguments.error());
    order.calls.push_back({name, *std::move(arguments)});
  }

  void record_at(lua_State* state) {
    if (recording_.inside) throw lua::ScriptError("at() inside of at()");
    Order order;
    order.at_step = luaL_checkinteger(state, 1);
    recording_.orders.push_back(std::move(order));
    recording_.lines.push_back(line_of_caller(state));
    recording_.inside = true;  // an error ends the whole reading
    if (lua_istable(state, 2)) {
      read_changes(state, 2, "");
    } else {
      luaL_checktype(state, 2, LUA_TFUNCTION);
      lua_pushvalue(state, 2);
      lua_call(state, 0, 0);
    }
    recording_.inside = false;
  }

 private:
  Order& order_for(const std::string& word) {
    if (!recording_.inside) throw lua::ScriptError(word + " stands outside of at(STEP, function() … end)");
    return recording_.orders.back();
  }

  void leave_out(const std::string& name, std::optional<Json> value) {
    recording_.gone.push_back({recording_.orders.size() - 1, name, std::move(value)});
  }

  void read_changes(lua_State* state, int table, const std::string& group) {
    lua::for_each_setting(state, table, group,
                          [&](const std::string& name, int) { assign(state, name, lua_gettop(state)); });
  }

  Recording& recording_;
};

RecordedSettings& recorded(lua_State* state) {
  return static_cast<RecordedSettings&>(lua::settings_target(state));
}

int call_action(lua_State* state) {
  const std::string name = lua_tostring(state, lua_upvalueindex(1));
  Json arguments = Json::object();
  if (lua_istable(state, 1))
    for (lua_pushnil(state); lua_next(state, 1) != 0; lua_pop(state, 1)) {
      if (lua_type(state, -2) != LUA_TSTRING) throw lua::ScriptError("names are words");
      const std::string key = lua_tostring(state, -2);
      arguments[key] = json_at(state, -1, name + "'s " + key);
    }
  recorded(state).call(name, arguments);
  return 0;
}

int at(lua_State* state) {
  recorded(state).record_at(state);
  return 0;
}

}  // namespace

void install_recorder(lua_State* state, Recording& recording) {
  lua::open_settings(state, std::make_unique<RecordedSettings>(recording));
  lua_pushcfunction(state, lua::bound<at>);
  lua_setglobal(state, "at");
  lua::settings_as_globals(state);
}

}  // namespace footplate
