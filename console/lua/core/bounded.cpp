#include "console/lua/core/bounded.h"

#include <string>
#include <string_view>

#include "console/lua/core/bind.h"

namespace footplate::lua {
namespace {

constexpr std::size_t kMaxString = 16U * 1024 * 1024;  ///< result of string.rep
constexpr std::size_t kMaxSubject = 1024U * 1024;      ///< text that a pattern is matched against
constexpr std::size_t kMaxPattern = 1024;
constexpr std::size_t kMaxCompared = kMaxSubject * kMaxPattern;  ///< text times plain text in it
constexpr int kMaxRepeats = 12;  ///< each * + - ? multiplies the ways a match can fail
constexpr std::size_t kMaxFormat = 64U * 1024;
constexpr lua_Integer kMaxRange = 1'000'000;  ///< entries that a table function touches

/// Calls the library's own function, which is upvalue 1, with the arguments as they are.
int call_original(lua_State* state) {
  const int arguments = lua_gettop(state);
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, arguments, LUA_MULTRET);
  return lua_gettop(state);
}

int repeat(lua_State* state) {
  std::size_t size = 0;
  std::size_t separator = 0;
  luaL_checklstring(state, 1, &size);
  const lua_Integer count = luaL_checkinteger(state, 2);
  luaL_optlstring(state, 3, "", &separator);
  if (count <= 0 || size + separator == 0) {
    lua_pushliteral(state, "");
    return 1;
  }
  if (static_cast<std::size_t>(count) > kMaxString / (size + separator))
    throw ScriptError("string.rep would make more than " + std::to_string(kMaxString >> 20) + " MiB");
  return call_original(state);
}

/// string.match, gmatch and gsub, and find with a pattern.
int match(lua_State* state) {
  std::size_t subject = 0;
  std::size_t size = 0;
  luaL_checklstring(state, 1, &subject);
  const char* const pattern = luaL_checklstring(state, 2, &size);
  int repeats = 0;
  for (const char c : std::string_view(pattern, size))
    repeats += c == '*' || c == '+' || c == '-' || c == '?' ? 1 : 0;
  if (subject > kMaxSubject)
    throw ScriptError("a text of more than 1 MiB can't be matched against a pattern; cut it with string.sub");
  if (size > kMaxPattern || repeats > kMaxRepeats)
    throw ScriptError("pattern too costly: at most " + std::to_string(kMaxPattern) + " bytes and " +
                      std::to_string(kMaxRepeats) + " of * + - ?");
  return call_original(state);
}

/// string.find: its fourth argument says that what it looks for is plain text.
int find(lua_State* state) {
  if (lua_toboolean(state, 4) == 0) return match(state);
  std::size_t subject = 0;
  std::size_t size = 0;
  luaL_checklstring(state, 1, &subject);
  luaL_checklstring(state, 2, &size);
  if (size > 0 && subject > kMaxCompared / size)
    throw ScriptError("a text of " + std::to_string(subject) + " bytes is too long to look for " +
                      std::to_string(size) + " in it; cut it with string.sub");
  return call_original(state);
}

int format(lua_State* state) {
  std::size_t size = 0;
  luaL_checklstring(state, 1, &size);
  if (size > kMaxFormat) throw ScriptError("string.format takes a format of at most 64 KiB");
  return call_original(state);
}

void check_range(const char* function, lua_Integer first, lua_Integer last) {
  // As unsigned, so that a range over all integers doesn't overflow.
  if (last >= first && static_cast<lua_Unsigned>(last) - static_cast<lua_Unsigned>(first) >= kMaxRange)
    throw ScriptError(std::string(function) + " is limited to " + std::to_string(kMaxRange) + " entries");
}

int move(lua_State* state) {
  check_range("table.move", luaL_checkinteger(state, 2), luaL_checkinteger(state, 3));
  return call_original(state);
}

int concat(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  const lua_Integer first = luaL_optinteger(state, 3, 1);
  check_range("table.concat", first,
              lua_isnoneornil(state, 4) ? luaL_len(state, 1) : luaL_checkinteger(state, 4));
  return call_original(state);
}

int unpack(lua_State* state) {
  const lua_Integer first = luaL_optinteger(state, 2, 1);
  check_range("table.unpack", first,
              lua_isnoneornil(state, 3) ? luaL_len(state, 1) : luaL_checkinteger(state, 3));
  return call_original(state);
}

/// table.insert, remove and sort: __len may claim any length.
int whole_table(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  check_range("a table function", 1, luaL_len(state, 1));
  return call_original(state);
}

void replace(lua_State* state, int library, const char* name, lua_CFunction function) {
  if (lua_getfield(state, library, name) == LUA_TNIL) return lua_pop(state, 1);
  lua_pushcclosure(state, function, 1);
  lua_setfield(state, library, name);
}

}  // namespace

void bound_string_library(lua_State* state, int library) {
  replace(state, library, "rep", bound<repeat>);
  replace(state, library, "format", bound<format>);
  replace(state, library, "find", bound<find>);
  for (const char* name : {"match", "gmatch", "gsub"}) replace(state, library, name, bound<match>);
}

void bound_table_library(lua_State* state, int library) {
  replace(state, library, "move", bound<move>);
  replace(state, library, "concat", bound<concat>);
  replace(state, library, "unpack", bound<unpack>);
  for (const char* name : {"insert", "remove", "sort"}) replace(state, library, name, bound<whole_table>);
}

}  // namespace footplate::lua
