#pragma once

#include <lua.hpp>
#include <string>

#include "protocol/settings.h"

namespace footplate {

/// What the fields of a running config read and write. Outlives the Lua state.
struct ConfigTarget {
  const Schema& schema;
  Settings& settings;
  std::string shown_as;  ///< the file, for sources: "configs/kjv.lua"
};

/// Makes the settings of `target` the global names of `lua`: groups (`train`, `log`) as userdata whose fields
/// read and assign, and `set{}`. An unknown name, read or assigned, is an error with the nearest name. May
/// raise a Lua error; call inside a protected call.
void install_groups(lua_State* lua, ConfigTarget& target);

}  // namespace footplate
