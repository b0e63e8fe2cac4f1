#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/session/session.h"
#include "protocol/store.h"

// store.x = …: data that belongs to the run. An assignment is staged like a setting's and travels in the
// chunk's order, as a call of run.store.

namespace footplate::lua {
namespace {

/// What the store will be once the chunk's order is applied.
Json whole_store(lua_State* state) {
  Session& session = session_of(state);
  Json store = session.look(request::Store{});
  session.stage().add_stored(store);
  return store;
}

int store_index(lua_State* state) {
  push_field(state, whole_store(state), string_argument(state, 2));
  return 1;
}

int store_assign(lua_State* state) {
  const std::string name = string_argument(state, 2);
  if (lua_isfunction(state, 3)) throw ScriptError("store holds data; a function can't be kept");
  const Json value = json_at(state, 3);
  Json after = whole_store(state);
  if (auto kept = put_in_store(after, name, value); !kept) throw ScriptError(kept.error());
  if (auto staged = session_of(state).stage().store(name, value.dump()); !staged)
    throw ScriptError(staged.error());
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
};

}  // namespace

std::span<const Registration> store_functions() {
  return kStoreFunctions;
}

}  // namespace footplate::lua
