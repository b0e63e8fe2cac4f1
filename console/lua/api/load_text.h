#pragma once

#include "protocol/json.h"
#include "protocol/schema.h"

namespace footplate::lua {

/// The arguments of ckpt.load as an order has them: `ref` may be a number, and `set` a table as set{} takes
/// it. Throws ScriptError.
void spell_out_load(const Schema& schema, Json& arguments);

}  // namespace footplate::lua
