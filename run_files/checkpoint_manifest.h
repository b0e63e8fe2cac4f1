#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protocol/messages/best_evaluation.h"
#include "protocol/messages/link_messages.h"

namespace footplate {

/// A file of a checkpoint.
struct CheckpointFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;
};

/// What those read of a checkpoint's manifest.json who load nothing from it; runtime/checkpoint/manifest.h
/// checks it.
struct CheckpointManifest {
  std::string run;
  std::int64_t start = 0;  ///< which start of it; 0: not known
  std::optional<std::int64_t> step;
  int world_size = 1;
  std::string branch;
  std::string tag;
  bool best = false;
  std::optional<BestEvaluation> best_evaluation;
  std::string created;          ///< ISO 8601
  Json settings;                ///< as of Settings::to_json; null: it has none
  Json store = Json::object();  ///< what scripts keep with the run
  std::vector<Order> orders;    ///< agreed for a later step
  LoggedMetrics metrics;        ///< for people
  std::vector<CheckpointFile> files;
};
/// Fields of another type, and orders that can't be read, are left out. Error (usage): not an object.
Result<void> read_json(const Json& json, CheckpointManifest& manifest);

/// Nothing: it can't be read, or isn't an object.
std::optional<CheckpointManifest> read_checkpoint_manifest(const std::filesystem::path& checkpoint);

/// {"log.every": {"value": 10, "source": "order 3"}, …}: those that can be read, by name.
std::map<std::string, SettingNow> settings_by_name(const Json& settings);

}  // namespace footplate
