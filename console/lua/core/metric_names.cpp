#include "console/lua/core/metric_names.h"

#include <algorithm>
#include <iterator>

#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"

namespace footplate::lua {
namespace {

constexpr const char* kTrain = "train/";

constexpr const char* kPerformance[] = {"perf/step_ms", "perf/tokens_per_s", "perf/tflops", "perf/mfu"};

/// __index of a table of metrics, for names that it doesn't have.
int metric_by_short_name(lua_State* state) {
  if (lua_type(state, 2) != LUA_TSTRING) return 0;
  const std::string name = string_argument(state, 2);
  lua_settop(state, 1);
  lua_pushstring(state, (kTrain + name).c_str());
  if (lua_rawget(state, 1) != LUA_TNIL) return 1;
  const std::string ending = "/" + name;
  int found = 0;
  lua_settop(state, 1);
  lua_pushnil(state);  // at 2: the value that was found
  for (lua_pushnil(state); lua_next(state, 1) != 0; lua_pop(state, 1)) {
    if (lua_type(state, -2) != LUA_TSTRING || !std::string_view(lua_tostring(state, -2)).ends_with(ending))
      continue;
    lua_copy(state, -1, 2);
    ++found;
  }
  lua_settop(state, 2);
  return found == 1 ? 1 : 0;
}

}  // namespace

std::optional<std::string> metric_meant(const Json& metrics, const std::string& name) {
  if (metrics.contains(name)) return name;
  if (metrics.contains(kTrain + name)) return kTrain + name;
  std::optional<std::string> found;
  for (const auto& [key, value] : metrics.items()) {
    if (!key.ends_with("/" + name)) continue;
    if (found) return std::nullopt;
    found = key;
  }
  return found;
}

const char* interval_of_metric(std::string_view name) {
  if (std::ranges::find(kPerformance, name) != std::end(kPerformance)) return "log.perf_every";
  if (name == "train/grad_norm" || name.starts_with("perf/") || name.starts_with("mem/"))
    return "log.detail_every";
  if (name.starts_with("gpu/")) return "log.gpu_every";
  return name.starts_with("data/") ? "log.dataset_every" : "log.every";
}

void push_metrics_table(lua_State* state, const Json& metrics) {
  push_json(state, metrics);
  lua_createtable(state, 0, 2);
  lua_pushcfunction(state, bound<metric_by_short_name>);
  lua_setfield(state, -2, "__index");
  lock_metatable(state);
  lua_setmetatable(state, -2);
}

}  // namespace footplate::lua
