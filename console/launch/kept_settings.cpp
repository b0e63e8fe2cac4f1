#include "console/launch/kept_settings.h"

#include "console/client/json_file.h"
#include "console/launch/history.h"
#include "protocol/variables.h"

namespace footplate {
namespace {

bool is_free(const Settings& settings, const std::string& name) {
  return settings.source(name) != "command line" && !is_from_environment(settings.source(name));
}

bool at_start(const Schema& schema, const std::string& name) {
  const SettingSpec* spec = schema.setting(name);
  return spec != nullptr && spec->applies == Applies::restart;
}

/// In the order in which they were applied; what a later start was given (id 0) is in `settings` already.
void keep(const Schema& schema, const std::vector<Order>& orders, const Settings& given, Settings& settings) {
  for (const Order& order : orders)
    for (const Change& change : order.changes) {
      if (!at_start(schema, change.name) || !is_free(given, change.name)) continue;
      if (order.id == 0)
        settings.set(change.name, given.value(change.name), given.source(change.name));
      else
        settings.set(change.name, change.value, "order " + std::to_string(order.id));
    }
}

void keep_of_checkpoint(const Schema& schema, const std::filesystem::path& checkpoint, Settings& settings) {
  const auto manifest = read_json_file(checkpoint / "manifest.json");
  if (!manifest || !manifest->contains("settings")) return;  // the ranks say what is wrong with it
  const auto saved = Settings::from_json((*manifest)["settings"], schema);
  if (!saved) return;
  for (const auto& spec : schema.settings)
    if (at_start(schema, spec.name) && is_free(settings, spec.name) &&
        saved->source(spec.name).starts_with("order"))
      settings.set(spec.name, saved->value(spec.name), saved->source(spec.name));
}

}  // namespace

Result<Settings> with_kept_settings(const Settings& settings, const Schema& schema,
                                    const std::filesystem::path& directory, int start,
                                    const std::string& resume) {
  Settings kept = settings;
  if (start == 1) {
    if (!resume.empty() && resume != "auto") keep_of_checkpoint(schema, resume, kept);
    return kept;
  }
  const auto history = read_history(directory, schema);
  if (!history) return tl::unexpected(history.error());
  keep(schema, history->applied, settings, kept);
  keep(schema, history->ahead, settings, kept);
  return kept;
}

}  // namespace footplate
