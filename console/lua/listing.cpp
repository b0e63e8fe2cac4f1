#include "console/lua/listing.h"

#include "console/lua/bind.h"
#include "console/lua/convert.h"

namespace footplate::lua {
namespace {

int listing_text(lua_State* state) {
  lua_pushvalue(state, lua_upvalueindex(1));
  return 1;
}

int next_pair(lua_State* state) {
  lua_settop(state, 2);
  return lua_next(state, 1) != 0 ? 2 : 0;
}

}  // namespace

int push_pairs(lua_State* state) {
  lua_pushcfunction(state, next_pair);
  lua_insert(state, -2);
  lua_pushnil(state);
  return 3;
}

void push_listing(lua_State* state, const Json& data, const std::string& text) {
  push_json(state, data);
  lua_createtable(state, 0, 2);
  lua_pushlstring(state, text.data(), text.size());
  lua_pushcclosure(state, listing_text, 1);
  lua_setfield(state, -2, "__tostring");
  lock_metatable(state);
  lua_setmetatable(state, -2);
}

std::string without_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

}  // namespace footplate::lua
