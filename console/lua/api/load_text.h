#pragma once

#include <string>

#include "protocol/json.h"
#include "protocol/schema.h"

namespace footplate::lua {

/// The arguments of ckpt.load as an order has them: `ref` may be a number, and `set` a table as set{} takes
/// it. Throws ScriptError.
void spell_out_load(const Schema& schema, Json& arguments);

/// The same of an action that takes nothing but a `ref` like that.
void spell_out_ref(const std::string& action, Json& arguments);

}  // namespace footplate::lua
