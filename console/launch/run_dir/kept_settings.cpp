#include "console/launch/run_dir/kept_settings.h"

#include <iterator>

#include "console/launch/run_dir/order_history.h"
#include "console/launch/run_dir/run_directory.h"
#include "protocol/gone_settings.h"
#include "protocol/nccl/variables.h"
#include "run_files/checkpoint_manifest.h"
#include "run_files/command_line_file.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"

namespace footplate {
namespace {

bool is_free(const Settings& settings, const std::string& name) {
  return start_of_command_line(settings.source(name)) == 0 && !is_from_environment(settings.source(name));
}

/// Whether what `source` says counts for more than `order`: a command line does where the order is older.
bool wins_over(const std::string& source, const Order& order, const History& history) {
  if (is_from_environment(source)) return true;
  const auto since = history.newest_order.lower_bound(start_of_command_line(source));
  return since != history.newest_order.begin() && order.id <= std::prev(since)->second;
}

bool at_start(const Schema& schema, const std::string& name) {
  const SettingSpec* spec = schema.setting(name);
  return spec != nullptr && spec->applies == Applies::restart;
}

/// In the order in which they were applied; what a later start was given (id 0) is in `settings` already.
void keep(const Schema& schema, const History& history, const std::vector<Order>& orders,
          const Settings& given, Settings& settings) {
  for (const Order& order : orders)
    for (const Change& change : order.changes) {
      if (!at_start(schema, change.name) || wins_over(given.source(change.name), order, history)) continue;
      if (order.id == 0)
        settings.set(change.name, given.value(change.name), given.source(change.name));
      else
        settings.set(change.name, change.value, "order " + std::to_string(order.id));
    }
}

/// What `json`, settings as files have them, says was set live.
void keep_live(const Schema& schema, const Json& json, Settings& settings) {
  const auto saved = earlier_settings_from_json(json, schema);
  if (!saved) return;
  for (const auto& spec : schema.settings)
    if (at_start(schema, spec.name) && is_free(settings, spec.name) &&
        saved->source(spec.name).starts_with("order"))
      settings.set(spec.name, saved->value(spec.name), saved->source(spec.name));
}

void keep_of_checkpoint(const Schema& schema, const std::filesystem::path& checkpoint, Settings& settings) {
  const auto manifest = read_checkpoint_manifest(checkpoint);
  if (manifest) keep_live(schema, manifest->settings, settings);  // else the ranks say what is wrong with it
}

/// Of the checkpoint that the run's first start went on from, if it did: its journal has only its own orders.
void keep_of_first_start(const Schema& schema, const std::filesystem::path& directory, const History& history,
                         Settings& settings) {
  if (history.newest_order.empty()) return;  // none has trained
  const auto config = read_json_file(config_path(directory, history.newest_order.begin()->first));
  if (config) keep_live(schema, *config, settings);
}

/// Of the start that went back to a checkpoint: it has what the journal says of the time before.
void keep_of_load(const Schema& schema, const std::filesystem::path& directory, int start,
                  Settings& settings) {
  const auto config = read_json_file(config_path(directory, start));
  const auto loaded = config ? earlier_settings_from_json(*config, schema) : Settings();
  if (!loaded) return;
  for (const auto& spec : schema.settings)
    if (at_start(schema, spec.name) && loaded->source(spec.name).starts_with("order") &&
        !is_from_environment(settings.source(spec.name)) &&
        start_of_command_line(settings.source(spec.name)) < start)
      settings.set(spec.name, loaded->value(spec.name), loaded->source(spec.name));
}

/// The first start of those whose command lines, up to the one that `before` tells of, had the same value.
int given_since(const CommandLineFile& before, const std::string& name, const Json& value, int start) {
  const auto entry = before.find(name);
  return entry == before.end() || entry->second.value != value ? start : entry->second.start;
}

}  // namespace

Result<Settings> with_kept_settings(const Settings& settings, const Schema& schema,
                                    const std::filesystem::path& directory, int start,
                                    const std::string& resume) {
  Settings kept = settings;
  if (!resume.empty() && resume != "auto") keep_of_checkpoint(schema, resume, kept);
  if (start == 1) return kept;
  const auto history = read_history(directory, schema);
  if (!history) return tl::unexpected(history.error());
  if (history->loaded > 0)
    keep_of_load(schema, directory, history->loaded, kept);
  else
    keep_of_first_start(schema, directory, *history, kept);
  const auto since = history->applied.begin() + static_cast<std::ptrdiff_t>(history->before_loaded);
  keep(schema, *history, {since, history->applied.end()}, settings, kept);
  keep(schema, *history, history->ahead, settings, kept);
  return kept;
}

Result<void> mark_repeated(Settings& settings, const std::filesystem::path& directory, int start) {
  // Empty in a new run, and in one of an older version.
  const CommandLineFile before = read_command_line_file(directory);
  const Settings given = settings;
  CommandLineFile now;
  for (const auto& [name, setting] : given.all()) {
    if (setting.source != kCommandLine) continue;
    const Json value = to_json(setting.value);
    const int since = given_since(before, name, value, start);
    if (since < start) settings.set(name, setting.value, command_line_of(since));
    now[name] = {value, since};
  }
  return write_command_line_file(directory, now);
}

}  // namespace footplate
