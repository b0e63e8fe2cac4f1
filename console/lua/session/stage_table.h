#pragma once

#include <lua.hpp>
#include <string>

#include "protocol/schema.h"

namespace footplate::lua {

/// Stages the fields of the table at `index`: { every = 10 } within `group`, or { log = { every = 10 } } and
/// { ["log.every"] = 10 } where `group` is empty. A field `expect` holds expected values of the same shape;
/// with force = true nobody is asked about them. Throws ScriptError; nothing of the table is staged then.
void stage_table(lua_State* state, int index, const std::string& group);

/// Whether the table on top of the stack, for `name`, `depth` tables down in such a table, is a group of
/// settings. Throws ScriptError where it is an empty one.
bool names_group(lua_State* state, const std::string& name, int depth);

/// The message for a name that is neither a setting nor an action.
std::string unknown_member(const Schema& schema, const std::string& name);

}  // namespace footplate::lua
