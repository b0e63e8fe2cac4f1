#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/json.h"
#include "protocol/messages/best_evaluation.h"
#include "protocol/result.h"
#include "run_files/checkpoint_folders.h"

namespace footplate {

/// Version of the checkpoint format that is written; the only one that is read (docs/checkpoints.md).
inline constexpr int kCheckpointFormat = 1;
inline constexpr std::uint64_t kMaxManifestBytes = 16u << 20;

/// One file of a checkpoint besides the manifest.
struct ManifestFile {
  std::string name;  ///< inside the folder: "rank-0.safetensors"
  std::uint64_t bytes = 0;
  std::string sha256;  ///< 64 lower-case hexadecimal digits
};

/// What a checkpoint says of itself: manifest.json.
struct Manifest {
  std::string run;         ///< id of the run that wrote it
  std::int64_t start = 0;  ///< which start of it; 0 in older checkpoints
  std::int64_t step = 0;   ///< completed steps
  int world_size = 1;
  std::string branch = "main";
  std::string tag;                                ///< empty: none
  bool best = false;                              ///< the best evaluation so far was at this step
  std::optional<BestEvaluation> best_evaluation;  ///< so far; nothing: none, or an older checkpoint
  bool only_best = false;                         ///< saved for that alone (ckpt.keep_best)
  std::string created;                            ///< ISO 8601, UTC
  std::uint64_t journal = 0;                      ///< id of the last order applied before it
  std::vector<ManifestFile> files;
  Json settings = Json::object();  ///< as of Settings::to_json
  Json progress = Json::object();  ///< random numbers, data position: the trainer's own words
  Json store = Json::object();     ///< what scripts keep with the run; left out where it is empty
  Json orders = Json::array();     ///< agreed for a later step; left out where there are none
  Json metrics = Json::object();   ///< for people and for inspect: {"eval/loss": …, "eval/step": …}
};

/// Without the hash.
Json to_json(const Manifest& manifest);
/// Errors (failed): another format version, a field that is missing or of the wrong type, a file name that
/// leads elsewhere.
Result<void> read_json(const Json& json, Manifest& manifest);

/// The manifest's text. Its last member is the SHA-256 of everything before it.
std::string to_text(const Manifest& manifest);

/// Reads what to_text wrote. Errors (failed): a hash that doesn't fit (any change of any byte), and those of
/// read_json.
Result<Manifest> manifest_from_text(std::string_view text);

}  // namespace footplate
