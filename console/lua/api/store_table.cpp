#include "console/lua/api/api.h"
#include "console/lua/api/catalogue.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/session/session.h"
#include "protocol/store.h"

// store.x = …: data that belongs to the run. An assignment is staged like a setting's and travels in the
// chunk's order, as a call of run.store.

namespace footplate::lua {
namespace {

constexpr const char* kSet = "set";

/// What the store will be once the chunk's order is applied, without what is footplate's own.
Json whole_store(lua_State* state) {
  Session& session = session_of(state);
  Json store = session.look(request::Store{});
  session.stage().add_stored(store);
  Json shown = Json::object();
  for (const auto& [name, value] : store.items())
    if (!name.starts_with(kOwnInStore)) shown[name] = value;
  return shown;
}

int store_index(lua_State* state) {
  const std::string name = string_argument(state, 2);
  if (name == kSet)
    lua_pushcfunction(state, find_registration("store.set")->handler);
  else
    push_field(state, whole_store(state), name);
  return 1;
}

/// With the value at stack index `value`.
void stage_entry(lua_State* state, const std::string& name, int value, bool keep) {
  if (lua_isfunction(state, value)) throw ScriptError("store holds data; a function can't be kept");
  if (name == kSet || name.starts_with(kOwnInStore))
    throw ScriptError("store." + name + " can't be set: set and names that begin with " + kOwnInStore +
                      " are footplate's own; take another name");
  const Json json = json_at(state, value);
  Json after = whole_store(state);
  if (auto kept = put_in_store(after, name, json); !kept) throw ScriptError(kept.error());
  if (auto staged = session_of(state).stage().store(name, json.dump(), keep); !staged)
    throw ScriptError(staged.error());
}

int store_assign(lua_State* state) {
  stage_entry(state, string_argument(state, 2), 3, /*keep=*/false);
  return 0;
}

/// store.set{ x = 5, keep = true }
int store_set(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  const int keep = lua_getfield(state, 1, "keep");
  if (keep != LUA_TNIL && keep != LUA_TBOOLEAN)
    throw ScriptError("keep is true or false, as in store.set{ x = 5, keep = true }");
  const bool kept = lua_toboolean(state, -1) != 0;
  lua_settop(state, 1);
  for (lua_pushnil(state); lua_next(state, 1) != 0; lua_pop(state, 1)) {
    if (lua_type(state, -2) != LUA_TSTRING)
      throw ScriptError("store.set takes names and values, as in store.set{ x = 5, keep = true }");
    if (const std::string name = lua_tostring(state, -2); name != "keep")
      stage_entry(state, name, lua_gettop(state), kept);
  }
  return 0;
}

int store_call(lua_State* state) {
  push_json(state, whole_store(state));
  return 1;
}

int store_text(lua_State* state) {
  const Json store = whole_store(state);
  push_json(state, store);
  push_text(state,
            store.empty() ? "store has nothing; store.x = 5 keeps data of the run" : render(state, -1));
  return 1;
}

int store_pairs(lua_State* state) {
  lua_getglobal(state, "next");
  push_json(state, whole_store(state));
  lua_pushnil(state);
  return 3;
}

int push_store(lua_State* state) {
  constexpr luaL_Reg kMethods[] = {{"__index", bound<store_index>},
                                   {"__newindex", bound<store_assign>},
                                   {"__call", bound<store_call>},
                                   {"__json", bound<store_call>},
                                   {"__pairs", bound<store_pairs>},
                                   {"__tostring", bound<store_text>},
                                   {nullptr, nullptr}};
  push_locked_object(state, kMethods);
  return 1;
}

constexpr Registration kStoreFunctions[] = {
    {.doc = {.name = "store",
             .role = Role::operate,
             .example = "store.x = 5",
             .help = "data of the run for all sessions, rules and jobs, kept in checkpoints; 64 KiB",
             .in_overview = true},
     .form = Form::object,
     .handler = bound<push_store>},
    {.doc = {.name = "store.set",
             .role = Role::operate,
             .example = "store.set{ x = 5, keep = true }",
             .help = "several at once; with keep = true they survive ckpt.load, else store is as in the "
                     "checkpoint then"},
     .handler = bound<store_set>},
};

}  // namespace

std::span<const Registration> store_functions() {
  return kStoreFunctions;
}

}  // namespace footplate::lua
