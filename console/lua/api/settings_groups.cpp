#include <algorithm>
#include <set>

#include "console/lua/api/api.h"
#include "console/lua/api/catalogue.h"
#include "console/lua/api/load_text.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/settings_table.h"
#include "console/lua/core/table_options.h"
#include "console/lua/reference/help.h"
#include "console/lua/session/computed_settings.h"
#include "console/lua/session/session.h"
#include "console/lua/session/stage_table.h"

// Settings as fields and actions as functions: log.every = 10, ckpt.save{ tag = "x" }.

namespace footplate::lua {
namespace {

constexpr const char* kLoadAction = "ckpt.load";
constexpr const char* kTagAction = "ckpt.tag";

/// force = true: nobody is asked. No parameter of an action has that name.
bool take_force(Json& arguments) {
  const bool forced = TableOptions(arguments).flag("force").value_or(false);
  if (arguments.is_object()) arguments.erase("force");
  return forced;
}

int call_action(lua_State* state) {
  Session& session = session_of(state);
  const std::string action = lua_tostring(state, lua_upvalueindex(1));
  Json arguments = Json::object();
  if (lua_type(state, 1) == LUA_TSTRING) {
    const ActionSpec& spec = *session.schema().action(action);
    const auto param = std::find_if(spec.params.begin(), spec.params.end(), [](const ParamSpec& item) {
      return item.type == Type::string || item.type == Type::choice;
    });
    if (param == spec.params.end())
      throw ScriptError(action + " takes no text; " +
                        help_text(session.schema(), session.settings(), catalogue_docs(), action));
    arguments[param->name] = string_argument(state, 1);
  } else if (lua_type(state, 1) == LUA_TNUMBER && action == kLoadAction) {
    arguments["ref"] = json_at(state, 1);
  } else if (lua_istable(state, 1)) {
    arguments = json_at(state, 1);
  } else if (!lua_isnoneornil(state, 1)) {
    throw ScriptError(action + " takes named arguments: " + session.schema().action(action)->example);
  }
  const bool forced = take_force(arguments);
  if (action == kLoadAction) spell_out_load(session.schema(), arguments);
  if (action == kTagAction) spell_out_ref(action, arguments);
  auto staged = session.stage().call(action, arguments);
  if (!staged) throw ScriptError(staged.error());
  if (forced) session.stage().force(action);
  push_handle(state, staged->first, staged->second);
  return 1;
}

/// What a chunk reads and stages.
class ChunkSettings final : public SettingsTarget {
 public:
  explicit ChunkSettings(Session& session) : session_(session) {}

  const Schema& schema() const override { return session_.schema(); }

  void push_setting(lua_State* state, const std::string& name) override {
    push_value(state, value_read(session_, name), name);
  }

  void assign(lua_State* state, const std::string& name, int value) override {
    if (schema().setting(name) == nullptr) {
      if (const ActionSpec* action = schema().action(name))
        throw ScriptError(name + " is an action: call it, " + action->example);
      throw ScriptError(unknown_member(name));
    }
    if (auto staged = session_.stage().assign(name, json_at(state, value)); !staged)
      throw ScriptError(staged.error());
  }

  void set(lua_State* state, const std::string& group) override {
    luaL_checktype(state, 1, LUA_TTABLE);
    stage_table(state, 1, group);
  }

  bool push_member(lua_State* state, const std::string& name) override {
    if (schema().action(name) != nullptr) {
      lua_pushlstring(state, name.data(), name.size());
      lua_pushcclosure(state, bound<call_action>, 1);
      return true;
    }
    const Registration* registered = find_registration(name);
    if (registered != nullptr) push_registered(state, *registered);
    return registered != nullptr;
  }

  std::string unknown_member(const std::string& name) const override {
    return lua::unknown_member(schema(), name);
  }

  bool has_fields(lua_State* state, const std::string& name, int depth) const override {
    return names_group(state, name, depth);
  }

  std::string refused_key(const std::string&, const std::string&) const override {
    return "set takes named values: { every = 10 }";
  }

 private:
  Session& session_;
};

/// A plain table of the group's values, in the schema's order by way of `next` on a list of pairs.
int group_next(lua_State* state) {
  Session& session = session_of(state);
  const std::string prefix = std::string(lua_tostring(state, lua_upvalueindex(1))) + ".";
  bool take = lua_isnil(state, 2);
  for (const auto& spec : session.schema().settings) {
    if (!spec.name.starts_with(prefix)) continue;
    const std::string key = spec.name.substr(prefix.size());
    if (take) {
      lua_pushlstring(state, key.data(), key.size());
      push_value(state, value_read(session, spec.name), spec.name);
      return 2;
    }
    take = key == string_argument(state, 2);
  }
  lua_pushnil(state);
  return 1;
}

int group_pairs(lua_State* state) {
  const std::string group = group_at(state, 1);
  lua_pushlstring(state, group.data(), group.size());
  lua_pushcclosure(state, bound<group_next>, 1);
  lua_pushvalue(state, 1);
  lua_pushnil(state);
  return 3;
}

int group_text(lua_State* state) {
  Session& session = session_of(state);
  const std::string group = group_at(state, 1);
  std::string text;
  for (const auto& spec : session.schema().settings)
    if (spec.name.starts_with(group + "."))
      text += (text.empty() ? "" : "\n") + spec.name + " = " + to_text(value_read(session, spec.name));
  for (const auto& spec : session.schema().actions)
    if (spec.name.starts_with(group + ".")) text += (text.empty() ? "" : "\n") + spec.name + "()";
  lua_pushlstring(state, text.data(), text.size());
  return 1;
}

int group_json(lua_State* state) {
  Session& session = session_of(state);
  const std::string prefix = group_at(state, 1) + ".";
  Json json = Json::object();
  for (const auto& spec : session.schema().settings)
    if (spec.name.starts_with(prefix))
      json[spec.name.substr(prefix.size())] = to_json(value_read(session, spec.name));
  push_json(state, json);
  return 1;
}

}  // namespace

std::string action_called(lua_State* state, int index) {
  if (lua_tocfunction(state, index) != static_cast<lua_CFunction>(bound<call_action>)) return {};
  lua_getupvalue(state, index, 1);
  std::string name = lua_tostring(state, -1);
  lua_pop(state, 1);
  return name;
}

void open_groups(lua_State* state, int own) {
  Session& session = session_of(state);
  constexpr luaL_Reg kMethods[] = {{"__pairs", bound<group_pairs>},
                                   {"__tostring", bound<group_text>},
                                   {"__json", bound<group_json>},
                                   {nullptr, nullptr}};
  open_settings(state, std::make_unique<ChunkSettings>(session), kMethods);
  std::set<std::string> groups;
  const auto add = [&](const std::string& name) { groups.insert(name.substr(0, name.find('.'))); };
  for (const auto& spec : session.schema().settings) add(spec.name);
  for (const auto& spec : session.schema().actions) add(spec.name);
  for (const FunctionDoc& function : catalogue_docs())
    if (std::string_view(function.name).find('.') != std::string_view::npos) add(function.name);
  for (const auto& group : groups) {
    push_group(state, group);
    lua_setfield(state, own, group.c_str());
  }
}

}  // namespace footplate::lua
