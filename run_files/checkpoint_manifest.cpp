#include "run_files/checkpoint_manifest.h"

#include "protocol/messages/fields.h"
#include "run_files/checkpoint_folders.h"
#include "run_files/json_file.h"

namespace footplate {

template <>
struct FieldsOf<CheckpointFile> {
  static void list(auto& field, auto& file) {
    field("name", file.name);
    field("bytes", file.bytes);
    field("sha256", file.sha256);
  }
};

template <>
struct FieldsOf<CheckpointManifest> {
  static void list(auto& field, auto& manifest) {
    field("run", manifest.run);
    field("start", manifest.start);
    field("step", manifest.step);
    field("world_size", manifest.world_size);
    field("branch", manifest.branch);
    field("tag", manifest.tag);
    field("best", manifest.best);
    field("best_evaluation", manifest.best_evaluation);
    field("created", manifest.created);
    field("settings", manifest.settings);
    field("store", manifest.store);
    field("metrics", manifest.metrics);
    field("files", manifest.files);
  }
};

Result<void> read_json(const Json& json, CheckpointManifest& manifest) {
  if (!json.is_object()) return fields::wrong("an object");
  manifest = read_tolerantly<CheckpointManifest>(json);
  if (const auto orders = json.find("orders"); orders != json.end() && orders->is_array())
    for (const Json& one : *orders)
      if (auto order = order_from_json(one)) manifest.orders.push_back(*std::move(order));
  return {};
}

std::optional<CheckpointManifest> read_checkpoint_manifest(const std::filesystem::path& checkpoint) {
  const auto json = read_json_file(checkpoint / kManifestName);
  CheckpointManifest manifest;
  if (!json || !read_json(*json, manifest)) return std::nullopt;
  return manifest;
}

std::map<std::string, SettingNow> settings_by_name(const Json& settings) {
  std::map<std::string, SettingNow> found;
  if (!settings.is_object()) return found;
  for (const auto& [name, json] : settings.items())
    if (SettingNow setting; read_json(json, setting)) found[name] = std::move(setting);
  return found;
}

}  // namespace footplate
