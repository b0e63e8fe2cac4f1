#include "console/lua/config/incomplete.h"

#include <lua.hpp>
#include <memory>

#include "console/lua/config/expression.h"

namespace footplate {
namespace {

enum class Read { whole, open, wrong };

/// Compiles and throws away: nothing is run.
Read read_as(lua_State* state, const std::string& text) {
  const int status = luaL_loadbufferx(state, text.data(), text.size(), "=input", "t");
  const std::string message = status == LUA_OK ? "" : lua_tostring(state, -1);
  lua_settop(state, 0);
  if (status == LUA_OK) return Read::whole;
  const bool at_end = message.ends_with("<eof>");
  const bool closed_string = message.find("unfinished string near") != std::string::npos;
  return at_end && !closed_string ? Read::open : Read::wrong;
}

}  // namespace

bool is_incomplete_chunk(const std::string& text) {
  const std::unique_ptr<lua_State, decltype(&lua_close)> state(luaL_newstate(), &lua_close);
  if (!state) return false;
  const Read expression = read_as(state.get(), as_expression(text));
  if (expression == Read::whole) return false;
  const Read statements = read_as(state.get(), text);
  return statements != Read::whole && (expression == Read::open || statements == Read::open);
}

}  // namespace footplate
