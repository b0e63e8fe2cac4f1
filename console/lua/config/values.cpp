#include "console/lua/config/values.h"

namespace footplate {
namespace {

/// Longer than any setting's list; bounds what one assignment can cost.
constexpr lua_Unsigned kLongestList = 1000;

Result<Json> list_from_lua(lua_State* lua, int index) {
  const lua_Unsigned size = lua_rawlen(lua, index);
  if (size > kLongestList) return fail(ErrorKind::usage, "a list of " + std::to_string(size) + " values");
  Json list = Json::array();
  for (lua_Unsigned i = 1; i <= size; ++i) {
    lua_rawgeti(lua, index, static_cast<lua_Integer>(i));
    auto item =
        lua_istable(lua, -1) ? fail(ErrorKind::usage, "a table inside a list") : json_from_lua(lua, -1);
    lua_pop(lua, 1);
    if (!item) return item;
    list.push_back(*std::move(item));
  }
  lua_pushnil(lua);
  for (lua_Unsigned seen = 0; lua_next(lua, index) != 0; lua_pop(lua, 1))
    if (++seen > size) {
      lua_pop(lua, 2);
      return fail(ErrorKind::usage, "a table with named fields");
    }
  return list;
}

}  // namespace

Result<Json> json_from_lua(lua_State* lua, int index) {
  index = lua_absindex(lua, index);
  switch (lua_type(lua, index)) {
    case LUA_TNIL:
      return Json(nullptr);
    case LUA_TBOOLEAN:
      return Json(lua_toboolean(lua, index) != 0);
    case LUA_TNUMBER:
      if (lua_isinteger(lua, index)) return Json(static_cast<std::int64_t>(lua_tointeger(lua, index)));
      return number_to_json(lua_tonumber(lua, index));
    case LUA_TSTRING: {
      std::size_t size = 0;
      const char* text = lua_tolstring(lua, index, &size);
      return Json(std::string(text, size));
    }
    case LUA_TTABLE:
      return list_from_lua(lua, index);
    case LUA_TUSERDATA:
      return fail(ErrorKind::usage, "a group of settings");
    default:
      return fail(ErrorKind::usage, std::string("a ") + luaL_typename(lua, index));
  }
}

void push_value(lua_State* lua, const Value& value) {
  std::visit(
      [lua](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, bool>) {
          lua_pushboolean(lua, held);
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          lua_pushinteger(lua, held);
        } else if constexpr (std::is_same_v<T, double>) {
          lua_pushnumber(lua, held);
        } else if constexpr (std::is_same_v<T, std::string>) {
          lua_pushlstring(lua, held.data(), held.size());
        } else {
          lua_createtable(lua, static_cast<int>(held.size()), 0);
          for (std::size_t i = 0; i < held.size(); ++i) {
            lua_pushnumber(lua, held[i]);
            lua_rawseti(lua, -2, static_cast<lua_Integer>(i) + 1);
          }
        }
      },
      value);
}

}  // namespace footplate
