#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/session/session.h"
#include "console/lua/session/stage_table.h"

// set{} and at(): several settings together, now or at a later step.

namespace footplate::lua {
namespace {

int set(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  stage_table(state, 1, "");
  return 0;
}

/// at(step, { … }): an order of its own, committed ahead. at(step, function): a rule (rules.cpp).
int at(lua_State* state) {
  Stage& stage = session_of(state).stage();
  const lua_Integer step = luaL_checkinteger(state, 1);
  if (lua_isfunction(state, 2) || lua_isfunction(state, 3)) return register_at(state);
  if (!lua_istable(state, 2))
    throw ScriptError(
        "at takes a step and a table, as in at(20000, { sched = { base_lr = 1e-4 } }), or a function");
  if (!stage.begin_at(step)) throw ScriptError("at() can't be used inside at()");
  try {
    stage_table(state, 2, "");
  } catch (...) {
    stage.abandon_at();
    throw;
  }
  push_handle(state, stage.finish_at(), -1);
  return 1;
}

constexpr Registration kChangeFunctions[] = {
    {.doc = {.name = "set",
             .role = Role::operate,
             .example = "set{ sched = { base_lr = 1e-4 }, expect = { sched = { base_lr = 3e-4 } } }",
             .help = "together or not at all; with expect only if the values are still these",
             .in_overview = true},
     .handler = bound<set>},
    {.doc = {.name = "at",
             .role = Role::operate,
             .example = "at(20000, { sched = { base_lr = 1e-4 } })",
             .help = "applied exactly at step 20000, committed ahead; at(20000, function() … end): a rule "
                     "that runs shortly before, on the metrics of then",
             .in_overview = true},
     .handler = bound<at>},
};

}  // namespace

std::span<const Registration> change_functions() {
  return kChangeFunctions;
}

}  // namespace footplate::lua
