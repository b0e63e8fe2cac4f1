#pragma once

#include <lua.hpp>
#include <string>

#include "console/lua/config/config.h"
#include "protocol/settings.h"

namespace footplate {

/// Makes `settings` the global names of a config's `state`: groups (`train`, `log`) whose fields read and
/// assign, and `set{}`. What is assigned has the source "configs/kjv.lua:3", where `shown_as` is the file. An
/// unknown name, read or assigned, is an error with the nearest name. Schema and settings outlive the state,
/// and follow run.task by `of_task`. May raise a Lua error; call inside a protected call.
void install_groups(lua_State* state, Schema& schema, Settings& settings, const std::string& shown_as,
                    const SchemaOfTask& of_task);

}  // namespace footplate
