#pragma once

#include <lua.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/json.h"

namespace footplate::lua {

/// The metric that a script means: `name` itself, else the one of train/, else the only one that ends in it:
/// "loss" is "train/loss". Nothing: none, or several.
std::optional<std::string> metric_meant(const Json& metrics, const std::string& name);

/// The setting that says how often training logs it, by its whole name: "log.detail_every" of
/// "train/grad_norm". log.every, where it is of no other kind.
const char* interval_of_metric(std::string_view name);

/// Pushes metrics as a table whose fields answer to these short names: m.loss is m["train/loss"]. What isn't
/// there is nil. Walking it gives the whole names.
void push_metrics_table(lua_State* state, const Json& metrics);

}  // namespace footplate::lua
