#include "console/lua/config/lua_version.h"

#include <lua.hpp>

namespace footplate {

const char* lua_version() {
  return LUA_RELEASE;
}

}  // namespace footplate
