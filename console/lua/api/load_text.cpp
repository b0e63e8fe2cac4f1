#include "console/lua/api/load_text.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "console/lua/core/bind.h"
#include "console/lua/core/table_options.h"

// ckpt.load{ ref = -500, set = { optim = { lr_scale = 0.5 } } }: as people write it, and as an order has it.

namespace footplate::lua {
namespace {

constexpr double kLargestStep = 9007199254740992.0;  // 2^53: exact in a double

void flatten(const Schema& schema, const std::string& prefix, const Json& table, Json& settings) {
  for (const auto& [key, value] : table.items()) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object() && schema.setting(name) == nullptr) {
      flatten(schema, name, value, settings);
      continue;
    }
    auto checked = schema.check_live(name, value);
    if (!checked) throw ScriptError(checked.error());
    settings[schema.setting(name)->name] = to_json(*checked);
  }
}

}  // namespace

void spell_out_load(const Schema& schema, Json& arguments) {
  if (const auto ref = arguments.find("ref"); ref != arguments.end() && ref->is_number()) {
    const double step = ref->get<double>();
    if (std::abs(step) > kLargestStep || step != std::floor(step))
      throw ScriptError("ckpt.load: a step is a whole number; got " + ref->dump());
    *ref = std::to_string(static_cast<std::int64_t>(step));
  }
  if (const auto skip = arguments.find("skip"); skip != arguments.end()) {
    const Json* found = skip->size() == 1 ? TableOptions(*skip).find("steps") : nullptr;
    if (found == nullptr || !found->is_number())
      throw ScriptError(
          "ckpt.load: skip leaves out the data of some steps from there on, as in skip = { steps = 30 }");
    const Json steps = *found;
    arguments.erase(skip);
    arguments["skip_steps"] = steps;
  }
  const auto set = arguments.find("set");
  if (set == arguments.end() || set->is_string()) return;  // as the journal has it
  Json settings = Json::object();
  if (set->is_object()) flatten(schema, "", *set, settings);
  if (settings.empty())
    throw ScriptError("ckpt.load: set is a table of settings, as in set = { optim = { lr_scale = 0.5 } }");
  *set = settings.dump();
}

}  // namespace footplate::lua
