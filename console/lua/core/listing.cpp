#include "console/lua/core/listing.h"

#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "protocol/value.h"

namespace footplate::lua {
namespace {

int listing_text(lua_State* state) {
  lua_pushvalue(state, lua_upvalueindex(1));
  return 1;
}

/// Upvalues: the list, and how many of its entries have been given out.
int next_pair(lua_State* state) {
  const lua_Integer given = lua_tointeger(state, lua_upvalueindex(2));
  if (lua_rawgeti(state, lua_upvalueindex(1), given + 1) == LUA_TNIL) return 1;
  lua_rawgeti(state, lua_upvalueindex(1), given + 2);
  lua_pushinteger(state, given + 2);
  lua_replace(state, lua_upvalueindex(2));
  return 2;
}

}  // namespace

int push_pairs(lua_State* state) {
  lua_pushinteger(state, 0);
  lua_pushcclosure(state, next_pair, 2);
  lua_pushnil(state);
  lua_pushnil(state);
  return 3;
}

lua_Integer number_in_brackets(lua_State* state, const char* example) {
  int whole = 0;
  const lua_Integer number = lua_tointegerx(state, 2, &whole);
  if (whole != 0) return number;
  const std::string what = luaL_tolstring(state, 2, nullptr);
  throw ScriptError(std::string("expects a whole number in brackets, as in ") + example + ", not " +
                    excerpt(what));
}

void push_listing(lua_State* state, const Json& data, const std::string& text) {
  push_json(state, data);
  lua_createtable(state, 0, 2);
  lua_pushlstring(state, text.data(), text.size());
  lua_pushcclosure(state, listing_text, 1);
  lua_setfield(state, -2, "__tostring");
  if (data.is_array()) {
    lua_pushboolean(state, 1);
    lua_setfield(state, -2, kListing);
  }
  lock_metatable(state);
  lua_setmetatable(state, -2);
}

std::string without_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace footplate::lua
