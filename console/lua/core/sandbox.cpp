#include "console/lua/core/sandbox.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "console/lua/core/bind.h"
#include "console/lua/core/bounded.h"

namespace footplate::lua {
namespace {

/// Functions of the base library that are safe as they are.
constexpr std::array kBase = {"assert",   "error",    "getmetatable", "next",    "pairs",
                              "pcall",    "rawequal", "rawlen",       "rawget",  "select",
                              "tonumber", "tostring", "type",         "_VERSION"};
constexpr const char* kView = "footplate.view";  ///< in the metatable of a library's read-only view
constexpr std::array kString = {"byte",  "char",  "find", "format",  "gmatch", "gsub", "len",
                                "lower", "match", "rep",  "reverse", "sub",    "upper"};
constexpr std::array kTable = {"concat", "insert", "move", "pack", "remove", "sort", "unpack"};
// With what Debian's library keeps of Lua 5.3 (cosh frexp ldexp log10 pow sinh tanh).
constexpr std::array kMath = {"cosh", "frexp",      "ldexp", "log10",     "pow",  "sinh",   "tanh",
                              "abs",  "acos",       "asin",  "atan",      "ceil", "cos",    "deg",
                              "exp",  "floor",      "fmod",  "huge",      "log",  "max",    "maxinteger",
                              "min",  "mininteger", "modf",  "pi",        "rad",  "random", "randomseed",
                              "sin",  "sqrt",       "tan",   "tointeger", "type", "ult"};
constexpr std::array kUtf8 = {"char", "charpattern", "codepoint", "codes", "len", "offset"};
constexpr std::array kCoroutine = {"close",   "create", "isyieldable", "resume",
                                   "running", "status", "wrap",        "yield"};
constexpr AllowedLibrary kLibraries[] = {{"string", luaopen_string, kString, bound_string_library},
                                         {"table", luaopen_table, kTable, bound_table_library},
                                         {"math", luaopen_math, kMath, nullptr},
                                         {"utf8", luaopen_utf8, kUtf8, nullptr},
                                         {"coroutine", luaopen_coroutine, kCoroutine, nullptr}};

/// Calls Lua's own function, which is upvalue 1, with the arguments as they are, for one result.
int call_own(lua_State* state) {
  const int arguments = lua_gettop(state);
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, arguments, 1);
  return 1;
}

int set_metatable(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  if (lua_istable(state, 2)) {
    lua_pushliteral(state, "__gc");
    lua_rawget(state, 2);
    // Hooks are off while a finaliser runs, so a loop in one could only be killed.
    if (!lua_isnil(state, -1)) throw ScriptError("__gc isn't available here");
    lua_pop(state, 1);
  }
  return call_own(state);
}

/// rawset, but not into the libraries: their views are those of all chunks in the process.
int raw_set(lua_State* state) {
  if (luaL_getmetafield(state, 1, kView) != LUA_TNIL)
    throw ScriptError("a library is read-only; use a table of your own");
  return call_own(state);
}

/// load(text or function, name, _, env): text only, in the session's environment (upvalue 2) by default.
int load_text(lua_State* state) {
  const int given = lua_gettop(state);
  lua_settop(state, 4);
  lua_pushliteral(state, "t");
  lua_replace(state, 3);
  if (given < 4) {
    lua_pushvalue(state, lua_upvalueindex(2));
    lua_replace(state, 4);
  }
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, 4, LUA_MULTRET);
  return lua_gettop(state);
}

int finish_xpcall(lua_State* state, int status, lua_KContext) {
  if (status == LUA_OK || status == LUA_YIELD) {
    lua_pushboolean(state, 1);
    lua_replace(state, 1);  // true in the handler's place
    return lua_gettop(state);
  }
  // The handler runs after the unwinding, as ordinary code that the hook reaches: inside Lua's own
  // message handlers hooks are off, and a loop there could only be killed.
  const int error = lua_gettop(state);
  lua_pushvalue(state, 1);
  lua_pushvalue(state, error);
  lua_pcall(state, 1, 1, 0);  // an error in the handler becomes the result, as in Lua
  lua_pushboolean(state, 0);
  lua_insert(state, -2);
  return 2;
}

/// xpcall(f, handler, …)
int protected_call(lua_State* state) {
  luaL_checktype(state, 2, LUA_TFUNCTION);
  const int arguments = lua_gettop(state) - 2;
  lua_pushvalue(state, 1);
  lua_copy(state, 2, 1);  // the handler stays below
  lua_replace(state, 2);
  return finish_xpcall(state, lua_pcallk(state, arguments, LUA_MULTRET, 0, 0, finish_xpcall), 0);
}

/// ipairs() of ranks, orders and rules, whose numbers don't begin with 1 or have gaps: all of them, by
/// number.
int indexed_pairs(lua_State* state) {
  const int given = lua_gettop(state);
  if (lua_isuserdata(state, 1) == 0 || luaL_getmetafield(state, 1, "__ipairs") == LUA_TNIL)
    lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, given, 3);
  return 3;
}

int collect_count(lua_State* state) {
  if (string_argument(state, 1) != "count") throw ScriptError("collectgarbage knows only \"count\" here");
  lua_pushnumber(state, lua_gc(state, LUA_GCCOUNT) + lua_gc(state, LUA_GCCOUNTB) / 1024.0);
  return 1;
}

int refuse_write(lua_State* state) {
  throw ScriptError(std::string(lua_tostring(state, lua_upvalueindex(1))) +
                    " is read-only; use a name of your own");
}

/// Pushes a table with what the one at `index` has.
void push_entries_of(lua_State* state, int index) {
  lua_newtable(state);
  const int copy = lua_gettop(state);
  for (lua_pushnil(state); lua_next(state, index) != 0;) {
    lua_pushvalue(state, -2);
    lua_insert(state, -2);
    lua_rawset(state, copy);
  }
}

/// Over a copy: next() tells what it goes through.
int view_pairs(lua_State* state) {
  lua_getglobal(state, "next");
  push_entries_of(state, lua_upvalueindex(1));
  lua_pushnil(state);
  return 3;
}

/// "math: abs acos …", of the library at upvalue 1, whose name is upvalue 2.
int view_text(lua_State* state) {
  std::vector<std::string> names;
  for (lua_pushnil(state); lua_next(state, lua_upvalueindex(1)) != 0; lua_pop(state, 1))
    names.emplace_back(lua_tostring(state, -2));
  std::ranges::sort(names);
  std::string text = std::string(lua_tostring(state, lua_upvalueindex(2))) + ":";
  for (const std::string& name : names) text += " " + name;
  lua_pushlstring(state, text.data(), text.size());
  return 1;
}

/// Puts a read-only view of the table on top of the stack into the table at `target`, as `name`.
void set_view(lua_State* state, int target, const char* name) {
  const int table = lua_gettop(state);
  lua_newtable(state);
  lua_createtable(state, 0, 6);
  lua_pushboolean(state, 1);
  lua_setfield(state, -2, kView);
  lua_pushvalue(state, table);
  lua_setfield(state, -2, "__index");
  lua_pushstring(state, name);
  lua_pushcclosure(state, bound<refuse_write>, 1);
  lua_setfield(state, -2, "__newindex");
  lua_pushvalue(state, table);
  lua_pushcclosure(state, view_pairs, 1);
  lua_setfield(state, -2, "__pairs");
  lua_pushvalue(state, table);
  lua_pushstring(state, name);
  lua_pushcclosure(state, bound<view_text>, 2);
  lua_setfield(state, -2, "__tostring");
  lock_metatable(state);
  lua_setmetatable(state, -2);
  lua_setfield(state, target, name);
  lua_settop(state, table - 1);
}

/// Takes all but `names` out of the table at `table`.
void keep_only(lua_State* state, int table, std::span<const char* const> names) {
  for (lua_pushnil(state); lua_next(state, table) != 0;) {
    lua_pop(state, 1);
    const std::string_view name = lua_tostring(state, -1);
    if (std::ranges::find(names, name) != names.end()) continue;
    lua_pushvalue(state, -1);
    lua_pushnil(state);
    lua_rawset(state, table);  // clearing fields during a traversal is allowed
  }
}

/// ("x"):rep works through the string metatable; nobody gets hold of it.
void lock_string_metatable(lua_State* state) {
  lua_pushliteral(state, "");
  lua_getmetatable(state, -1);
  lock_metatable(state);
  lua_pop(state, 2);
}

int unknown_global(lua_State* state) {
  const std::string name = lua_type(state, 2) == LUA_TSTRING ? lua_tostring(state, 2) : "?";
  lua_pushvalue(state, 2);
  if (lua_rawget(state, lua_upvalueindex(1)) != LUA_TNIL) return 1;
  std::vector<std::string> known;
  for (lua_pushnil(state); lua_next(state, lua_upvalueindex(1)) != 0; lua_pop(state, 1))
    known.emplace_back(lua_tostring(state, -2));
  throw ScriptError(owner_of(state).unknown_name(name, known));
}

int new_global(lua_State* state) {
  lua_pushvalue(state, 2);
  if (lua_rawget(state, lua_upvalueindex(1)) != LUA_TNIL)
    throw ScriptError("'" + std::string(lua_tostring(state, 2)) +
                      "' is footplate's own name; use another one, or a local variable");
  if (lua_type(state, 2) == LUA_TSTRING && !lua_isfunction(state, 3))  // no setting is meant by a function
    if (const std::string why = owner_of(state).refused_variable(lua_tostring(state, 2)); !why.empty())
      throw ScriptError(why);
  lua_settop(state, 3);
  lua_rawset(state, 1);
  return 0;
}

/// load() compiles for the environment of its caller; `load` is Lua's own, at the top of the stack.
void add_load(lua_State* state, int own, int environment) {
  lua_pushvalue(state, environment);
  lua_pushcclosure(state, load_text, 2);
  lua_setfield(state, own, "load");
}

/// Functions of Lua that scripts may use, some of them wrapped, into the table at `own`.
void add_wrapped_base(lua_State* state, int own, int environment) {
  add_base(state, own, kBase);
  luaL_requiref(state, "_G", luaopen_base, 0);
  const int base = lua_gettop(state);
  lua_getfield(state, base, "ipairs");
  lua_pushcclosure(state, indexed_pairs, 1);
  lua_setfield(state, own, "ipairs");
  lua_getfield(state, base, "setmetatable");
  lua_pushcclosure(state, bound<set_metatable>, 1);
  lua_setfield(state, own, "setmetatable");
  lua_getfield(state, base, "rawset");
  lua_pushcclosure(state, bound<raw_set>, 1);
  lua_setfield(state, own, "rawset");
  lua_getfield(state, base, "load");
  add_load(state, own, environment);
  lua_pushcfunction(state, protected_call);
  lua_setfield(state, own, "xpcall");
  lua_pushcfunction(state, bound<collect_count>);
  lua_setfield(state, own, "collectgarbage");
  lua_pop(state, 1);
}

/// Unknown names are errors, footplate's own can't be replaced.
void bind_environment(lua_State* state, int own, int environment) {
  lua_pushvalue(state, environment);
  lua_setfield(state, own, "_G");
  lua_createtable(state, 0, 3);
  lua_pushvalue(state, own);
  lua_pushcclosure(state, bound<unknown_global>, 1);
  lua_setfield(state, -2, "__index");
  lua_pushvalue(state, own);
  lua_pushcclosure(state, bound<new_global>, 1);
  lua_setfield(state, -2, "__newindex");
  lock_metatable(state);
  lua_setmetatable(state, environment);
}

}  // namespace

void add_base(lua_State* state, int target, std::span<const char* const> functions) {
  luaL_requiref(state, "_G", luaopen_base, 0);
  const int base = lua_gettop(state);
  for (const char* name : functions) {
    lua_getfield(state, base, name);
    lua_setfield(state, target, name);
  }
  lua_pop(state, 1);
}

void add_libraries(lua_State* state, int target, std::span<const AllowedLibrary> libraries, bool read_only) {
  for (const AllowedLibrary& library : libraries) {
    luaL_requiref(state, library.name, library.open, 0);
    keep_only(state, lua_gettop(state), library.functions);
    if (library.bound != nullptr) library.bound(state, lua_gettop(state));
    if (read_only)
      set_view(state, target, library.name);
    else
      lua_setfield(state, target, library.name);
  }
}

void push_environment(lua_State* state, int own) {
  own = lua_absindex(state, own);
  lua_newtable(state);
  const int environment = lua_gettop(state);
  add_wrapped_base(state, own, environment);
  add_libraries(state, own, kLibraries, /*read_only=*/true);
  lock_string_metatable(state);
  bind_environment(state, own, environment);
}

void push_environment_like(lua_State* state, int own) {
  own = lua_absindex(state, own);
  lua_newtable(state);
  const int environment = lua_gettop(state);
  push_entries_of(state, own);
  const int copy = lua_gettop(state);
  lua_getfield(state, own, "load");
  lua_getupvalue(state, -1, 1);
  lua_remove(state, -2);
  add_load(state, copy, environment);
  bind_environment(state, copy, environment);
  lua_settop(state, environment);
}

}  // namespace footplate::lua
