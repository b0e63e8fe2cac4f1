#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/session/session.h"

// print(…): to the output of the running chunk.

namespace footplate::lua {
namespace {

int print(lua_State* state) {
  std::string line;
  for (int i = 1; i <= lua_gettop(state); ++i) {
    std::size_t size = 0;
    const char* text = luaL_tolstring(state, i, &size);
    line.append(i > 1 ? "\t" : "").append(text, size);
    lua_pop(state, 1);
  }
  session_of(state).print(line + "\n");
  return 0;
}

constexpr Registration kOutputFunctions[] = {
    {.doc = {.name = "print",
             .role = Role::view,
             .example = "print(…)",
             .help = "to the output of this chunk",
             .in_overview = true},
     .handler = bound<print>},
};

}  // namespace

std::span<const Registration> output_functions() {
  return kOutputFunctions;
}

}  // namespace footplate::lua
