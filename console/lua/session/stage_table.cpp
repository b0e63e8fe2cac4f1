#include "console/lua/session/stage_table.h"

#include <algorithm>
#include <set>

#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/settings_table.h"
#include "console/lua/session/session.h"
#include "protocol/schema_names.h"

namespace footplate::lua {
namespace {

bool is_empty(lua_State* state, int table) {
  lua_pushnil(state);
  if (lua_next(state, table) == 0) return true;
  lua_pop(state, 2);
  return false;
}

enum class Fields { assigned, forced, expected };

/// What set{} has besides settings.
bool is_option(std::string_view name) {
  return name == "expect" || name == "force";
}

void stage_fields(lua_State* state, int table, const std::string& group, Fields kind,
                  std::set<std::string>& seen) {
  Session& session = session_of(state);
  for_each_setting(state, table, group, [&](const std::string& name, int depth) {
    const std::string_view key = std::string_view(name).substr(group.empty() ? 0 : group.size() + 1);
    if (depth == 0 && is_option(key) && kind != Fields::expected) return;
    if (session.schema().setting(name) == nullptr) throw ScriptError(unknown_member(session.schema(), name));
    // A table has no order: which of the two would count is chance.
    if (!seen.insert(name).second) throw ScriptError("set{} names " + name + " twice");
    const Json value = json_at(state, -1);
    const auto staged =
        kind == Fields::expected ? session.stage().expect(name, value) : session.stage().assign(name, value);
    if (!staged) throw ScriptError(staged.error());
    if (kind == Fields::forced) session.stage().force(name);
  });
}

}  // namespace

/// The message for a name that is neither a setting nor an action of `group`.
std::string unknown_member(const Schema& schema, const std::string& name) {
  std::vector<std::string> known;
  for (const auto& spec : schema.settings) {
    if (stands_for(spec, name)) return schema.unknown_setting(name);
    known.push_back(spec.name);
  }
  for (const auto& spec : schema.actions) known.push_back(spec.name);
  const std::string near = nearest(name, known);
  if (!near.empty() && schema.action(near) != nullptr)
    return "unknown name '" + name + "'; did you mean " + near + "()?";
  return schema.unknown_setting(name);
}

bool names_group(lua_State* state, const std::string& name, int depth) {
  const Schema& schema = session_of(state).schema();
  const bool is_nested = depth > 0 || name.find('.') != std::string::npos;  // as data.share of data
  if (is_nested && (schema.setting(name) != nullptr || !is_group(schema, name) || depth >= kDeepestSet))
    return false;
  if (is_option(name)) return false;
  if (is_empty(state, lua_gettop(state)))
    throw ScriptError(name + " = {} names no setting; as in " + name + " = { NAME = VALUE }");
  return true;
}

void stage_table(lua_State* state, int index, const std::string& group) {
  Stage& stage = session_of(state).stage();
  index = lua_absindex(state, index);
  luaL_checkstack(state, 4, "set{} nested too deeply");
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

}  // namespace footplate::lua
