#include "run_files/next_start.h"

#include "protocol/gone_settings.h"
#include "protocol/nccl/variables.h"
#include "run_files/checkpoint_manifest.h"

namespace footplate {

Settings as_of_start(const Settings& settings, int start) {
  Settings earlier = settings;
  for (const auto& [name, setting] : settings.all())
    if (setting.source == kCommandLine) earlier.set(name, setting.value, command_line_of(start));
  return earlier;
}

Settings with_loaded_settings(const Settings& settings, const Schema& schema, const LoadTarget& load) {
  Settings then = settings;
  // One that can't be read is left to the ranks, which say what is wrong with it.
  if (const auto manifest = read_checkpoint_manifest(load.path)) {
    const auto saved = earlier_settings_from_json(manifest->settings, schema);
    for (const auto& spec : schema.settings)
      if (saved && spec.applies == Applies::restart && saved->source(spec.name).starts_with("order") &&
          !is_from_environment(settings.source(spec.name)) &&
          start_of_command_line(settings.source(spec.name)) <= manifest->start)
        then.set(spec.name, saved->value(spec.name), saved->source(spec.name));
  }
  for (const auto& [name, setting] : settings_by_name(load.settings))
    if (auto value = schema.check(name, setting.value); value && !is_from_environment(settings.source(name)))
      then.set(name, *std::move(value), setting.source.empty() ? load.order : setting.source);
  return then;
}

}  // namespace footplate
