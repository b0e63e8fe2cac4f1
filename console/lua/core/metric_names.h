#pragma once

#include <lua.hpp>
#include <optional>
#include <string>

#include "protocol/json.h"

namespace footplate::lua {

/// The metric that a script means: `name` itself, else the one of train/, else the only one that ends in it:
/// "loss" is "train/loss". Nothing: none, or several.
std::optional<std::string> metric_meant(const Json& metrics, const std::string& name);

/// Pushes metrics as a table whose fields answer to these short names: m.loss is m["train/loss"]. What isn't
/// there is nil. Walking it gives the whole names.
void push_metrics_table(lua_State* state, const Json& metrics);

}  // namespace footplate::lua
