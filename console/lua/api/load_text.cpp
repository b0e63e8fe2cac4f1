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

/// A step as text, as `ref` has it.
std::string step_text(const Json& ref, const TableOptions& options) {
  const double step = ref.get<double>();
  if (std::abs(step) > kLargestStep || step != std::floor(step))
    options.refuse("a step", "is a whole number; got " + ref.dump());
  return std::to_string(static_cast<std::int64_t>(step));
}

/// skip = { steps = 30 }
Json skipped_steps(const Json& skip, const TableOptions& options) {
  const Json* steps = skip.size() == 1 ? TableOptions(skip).find("steps") : nullptr;
  if (steps == nullptr || !steps->is_number())
    options.refuse("skip", "leaves out the data of some steps from there on, as in skip = { steps = 30 }");
  return *steps;
}

/// set = { optim = { lr_scale = 0.5 } }, as the JSON text of settings by name.
std::string settings_text(const Schema& schema, const Json& set, const TableOptions& options) {
  Json settings = Json::object();
  if (set.is_object()) flatten(schema, "", set, settings);
  if (settings.empty())
    options.refuse("set", "is a table of settings, as in set = { optim = { lr_scale = 0.5 } }");
  return settings.dump();
}

}  // namespace

void spell_out_ref(const std::string& action, Json& arguments) {
  if (!arguments.is_object()) return;
  const TableOptions options(arguments, action);
  if (const Json* ref = options.find("ref"); ref != nullptr && ref->is_number())
    arguments["ref"] = step_text(Json(*ref), options);
}

void spell_out_load(const Schema& schema, Json& arguments) {
  if (!arguments.is_object()) return;
  spell_out_ref("ckpt.load", arguments);
  const TableOptions options(arguments, "ckpt.load");
  Json spelt = Json::object();
  if (const Json* skip = options.find("skip")) spelt["skip_steps"] = skipped_steps(*skip, options);
  const Json* set = options.find("set");
  if (set != nullptr && !set->is_string())  // text: as the journal has it
    spelt["set"] = settings_text(schema, *set, options);
  arguments.erase("skip");
  arguments.update(spelt);
}

}  // namespace footplate::lua
