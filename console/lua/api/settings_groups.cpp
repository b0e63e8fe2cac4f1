#include <algorithm>
#include <set>

#include "console/lua/api/api.h"
#include "console/lua/api/load_text.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/session/session.h"

// Settings as fields and actions as functions: log.every = 10, ckpt.save{ tag = "x" }.

namespace footplate::lua {
namespace {

constexpr const char* kGroup = "footplate.group";
constexpr const char* kLoadAction = "ckpt.load";

std::string group_of(lua_State* state) {
  luaL_checkudata(state, 1, kGroup);
  lua_getiuservalue(state, 1, 1);
  std::string group = lua_tostring(state, -1);
  lua_pop(state, 1);
  return group;
}

/// The message for a name that is neither a setting nor an action of `group`.
std::string unknown_member(const Schema& schema, const std::string& name) {
  std::vector<std::string> known;
  for (const auto& spec : schema.settings) {
    if (std::find(spec.aliases.begin(), spec.aliases.end(), name) != spec.aliases.end())
      return schema.unknown_setting(name);
    known.push_back(spec.name);
  }
  for (const auto& spec : schema.actions) known.push_back(spec.name);
  const std::string near = nearest(name, known);
  if (!near.empty() && schema.action(near) != nullptr)
    return "unknown name '" + name + "'; did you mean " + near + "()?";
  return schema.unknown_setting(name);
}

/// force = true: nobody is asked. No parameter of an action has that name.
bool take_force(Json& arguments) {
  if (!arguments.is_object() || !arguments.contains("force")) return false;
  const Json force = arguments["force"];
  if (!force.is_boolean()) throw ScriptError("force is true or false");
  arguments.erase("force");
  return force.get<bool>();
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
      throw ScriptError(action + " takes no text; " + help_text(session, action));
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
  auto staged = session.stage().call(action, arguments);
  if (!staged) throw ScriptError(staged.error());
  if (forced) session.stage().force(action);
  push_handle(state, staged->first, staged->second);
  return 1;
}

int set_in_group(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  stage_table(state, 1, lua_tostring(state, lua_upvalueindex(1)));
  return 0;
}

/// Which of step, event and seconds run.wait is asked for.
std::string waited_for(const Json& arguments) {
  std::string what;
  for (const auto& [key, value] : arguments.items()) {
    const bool number = key == "step" || key == "seconds" || key == "timeout_s";
    if (!(number ? value.is_number() : key == "event" && value.is_string()))
      throw ScriptError(
          "run.wait takes one of step, event and seconds, and timeout_s, as in run.wait{ step = 30000 }");
    if (number && key != "step" && value < 0)
      throw ScriptError("run.wait can't wait for " + key + " = " + value.dump() + ": 0 or more");
    if (key != "timeout_s") what = what.empty() ? key : "?";
  }
  if (what == "seconds" && arguments.contains("timeout_s"))
    throw ScriptError("run.wait{ seconds = … } ends by itself; timeout_s is for step and event");
  if (what.empty() || what == "?")
    throw ScriptError("run.wait needs one of step, event and seconds: run.wait{ step = 30000 }");
  return what;
}

/// run.wait{ step = 30000 }, { event = "eval" }, { seconds = 60 }: until the run has come that far.
int run_wait(lua_State* state) {
  Session& session = session_of(state);
  luaL_checktype(state, 1, LUA_TTABLE);
  const Json arguments = json_at(state, 1);
  const std::string what = waited_for(arguments);
  session.begin_wait("run.wait");
  const Waiting waiting(session.activity().clock);
  const Json reached = session.ask("wait_" + what, arguments);
  if (reached.value("timed_out", false))
    throw ScriptError((what == "step" ? "step " + arguments["step"].dump() + " not reached"
                                      : "no event '" + arguments.value("event", "") + "'") +
                          " within " + arguments["timeout_s"].dump() + " s; the run is at step " +
                          reached["step"].dump(),
                      ErrorKind::timed_out);
  push_json(state, what == "event" ? reached.value("event", Json()) : reached.value("step", Json()));
  return 1;
}

/// run.name, run.id, run.step, run.state: nothing that a schema describes.
bool push_run_fact(lua_State* state, Session& session, const std::string& key) {
  if (key == "wait" || key == "stop_when") {
    lua_pushcfunction(state, key == "wait" ? bound<run_wait> : bound<register_stop_when>);
  } else if (key == "name" || key == "id") {
    push_json(state, session.greeting().run.value(key, Json()));
  } else if (key == "resumed") {
    lua_pushboolean(state, session.greeting().resumed ? 1 : 0);
  } else if (key == "step" || key == "state") {
    push_json(state, session.look("status").value(key, Json()));
  } else {
    return false;
  }
  return true;
}

/// What nccl has besides settings and actions; null: no such function.
lua_CFunction nccl_function(const std::string& name) {
  if (name == "nccl.preset") return bound<nccl_preset>;
  if (name == "nccl.show") return bound<nccl_show>;
  if (name == "nccl.ras") return bound<nccl_ras>;
  if (name == "nccl.try") return bound<nccl_try>;
  if (name == "nccl.tune") return bound<nccl_tune>;
  return nullptr;
}

int group_index(lua_State* state) {
  Session& session = session_of(state);
  const std::string group = group_of(state);
  const std::string key = string_argument(state, 2);
  const std::string name = group + "." + key;
  if (session.schema().setting(name) != nullptr) {
    push_value(state, session.stage().value(name), name);
  } else if (session.schema().action(name) != nullptr) {
    lua_pushlstring(state, name.data(), name.size());
    lua_pushcclosure(state, bound<call_action>, 1);
  } else if (key == "set") {
    lua_pushlstring(state, group.data(), group.size());
    lua_pushcclosure(state, bound<set_in_group>, 1);
  } else if (name == "eval.cancel") {
    lua_pushcfunction(state, bound<eval_cancel>);
  } else if (name == "comm.drop") {
    lua_pushcfunction(state, bound<comm_drop>);
  } else if (name == "comm.report") {
    lua_pushcfunction(state, bound<comm_report>);
  } else if (const auto function = nccl_function(name)) {
    lua_pushcfunction(state, function);
  } else if (group != "run" || !push_run_fact(state, session, key)) {
    throw ScriptError(unknown_member(session.schema(), name));
  }
  return 1;
}

int group_assign(lua_State* state) {
  Session& session = session_of(state);
  const std::string name = group_of(state) + "." + string_argument(state, 2);
  if (session.schema().setting(name) == nullptr) {
    if (session.schema().action(name) != nullptr)
      throw ScriptError(name + " is an action: call it, " + session.schema().action(name)->example);
    throw ScriptError(unknown_member(session.schema(), name));
  }
  if (auto staged = session.stage().assign(name, json_at(state, 3)); !staged)
    throw ScriptError(staged.error());
  return 0;
}

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
      push_value(state, session.stage().value(spec.name), spec.name);
      return 2;
    }
    take = key == string_argument(state, 2);
  }
  lua_pushnil(state);
  return 1;
}

int group_pairs(lua_State* state) {
  const std::string group = group_of(state);
  lua_pushlstring(state, group.data(), group.size());
  lua_pushcclosure(state, bound<group_next>, 1);
  lua_pushvalue(state, 1);
  lua_pushnil(state);
  return 3;
}

int group_text(lua_State* state) {
  Session& session = session_of(state);
  const std::string group = group_of(state);
  std::string text;
  for (const auto& spec : session.schema().settings)
    if (spec.name.starts_with(group + "."))
      text += (text.empty() ? "" : "\n") + spec.name + " = " + to_text(session.stage().value(spec.name));
  for (const auto& spec : session.schema().actions)
    if (spec.name.starts_with(group + ".")) text += (text.empty() ? "" : "\n") + spec.name + "()";
  lua_pushlstring(state, text.data(), text.size());
  return 1;
}

int group_json(lua_State* state) {
  Session& session = session_of(state);
  const std::string prefix = group_of(state) + ".";
  Json json = Json::object();
  for (const auto& spec : session.schema().settings)
    if (spec.name.starts_with(prefix))
      json[spec.name.substr(prefix.size())] = to_json(session.stage().value(spec.name));
  push_json(state, json);
  return 1;
}

bool is_empty(lua_State* state, int table) {
  lua_pushnil(state);
  if (lua_next(state, table) == 0) return true;
  lua_pop(state, 2);
  return false;
}

enum class Fields { assigned, forced, expected };

void stage_fields(lua_State* state, int table, const std::string& group, Fields kind,
                  std::set<std::string>& seen, bool inner_table = false) {
  Session& session = session_of(state);
  for (lua_pushnil(state); lua_next(state, table) != 0; lua_pop(state, 1)) {
    if (lua_type(state, -2) != LUA_TSTRING) throw ScriptError("set takes named values: { every = 10 }");
    const std::string key = lua_tostring(state, -2);
    const std::string name = group.empty() ? key : group + "." + key;
    const bool inner = group.empty() && key.find('.') == std::string::npos && lua_istable(state, -1);
    if (!inner_table && (key == "expect" || key == "force") && kind != Fields::expected) continue;
    if (inner) {
      if (is_empty(state, lua_gettop(state)))
        throw ScriptError(key + " = {} names no setting; as in " + key + " = { NAME = VALUE }");
      stage_fields(state, lua_gettop(state), key, kind, seen, /*inner_table=*/true);
      continue;
    }
    if (session.schema().setting(name) == nullptr) throw ScriptError(unknown_member(session.schema(), name));
    // A table has no order: which of the two would count is chance.
    if (!seen.insert(name).second) throw ScriptError("set{} names " + name + " twice");
    const Json value = json_at(state, -1);
    const auto staged =
        kind == Fields::expected ? session.stage().expect(name, value) : session.stage().assign(name, value);
    if (!staged) throw ScriptError(staged.error());
    if (kind == Fields::forced) session.stage().force(name);
  }
}

}  // namespace

void stage_table(lua_State* state, int index, const std::string& group) {
  Stage& stage = session_of(state).stage();
  index = lua_absindex(state, index);
  luaL_checkstack(state, 12, "set{} nested too deeply");
  const auto before = stage.snapshot();
  try {
    const int force = lua_getfield(state, index, "force");
    if (force != LUA_TNIL && force != LUA_TBOOLEAN) throw ScriptError("force is true or false");
    std::set<std::string> assigned, expected;
    stage_fields(state, index, group, lua_toboolean(state, -1) != 0 ? Fields::forced : Fields::assigned,
                 assigned);
    if (assigned.empty())
      throw ScriptError("the table names no setting, so it changes nothing; as in " +
                        (group.empty() ? "set{ [\"optim.lr_scale\"] = 0.5, log = { every = 10 } }"
                                       : group + ".set{ NAME = VALUE }"));
    const int expect = lua_getfield(state, index, "expect");
    if (expect != LUA_TNIL && expect != LUA_TTABLE)
      throw ScriptError(
          "expect is a table of what settings have to be before, as in expect = { [\"log.every\"] = 50 }");
    if (expect == LUA_TTABLE) stage_fields(state, lua_gettop(state), group, Fields::expected, expected);
    lua_pop(state, 2);
  } catch (...) {  // together or not at all, also where a pcall goes on after the error
    stage.restore(before);
    throw;
  }
}

void open_groups(lua_State* state, int own) {
  const Schema& schema = session_of(state).schema();
  constexpr luaL_Reg kMethods[] = {{"__index", bound<group_index>}, {"__newindex", bound<group_assign>},
                                   {"__pairs", bound<group_pairs>}, {"__tostring", bound<group_text>},
                                   {"__json", bound<group_json>},   {nullptr, nullptr}};
  add_locked_type(state, kGroup, kMethods);
  std::set<std::string> groups = {"comm", "run"};
  for (const auto& spec : schema.settings) groups.insert(spec.name.substr(0, spec.name.find('.')));
  for (const auto& spec : schema.actions) groups.insert(spec.name.substr(0, spec.name.find('.')));
  for (const auto& group : groups) {
    lua_newuserdatauv(state, 0, 1);
    lua_pushlstring(state, group.data(), group.size());
    lua_setiuservalue(state, -2, 1);
    luaL_setmetatable(state, kGroup);
    lua_setfield(state, own, group.c_str());
  }
}

}  // namespace footplate::lua
