#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "protocol/messages/best_evaluation.h"
#include "run_files/checkpoint_manifest.h"

namespace footplate {

// What `footplate-rank --inspect` says.

/// A checkpoint in the list of a run's.
struct ListedCheckpoint {
  std::string path;
  std::string error;  ///< it is damaged: how
  std::int64_t step = 0;
  std::string tag;
  bool best = false;
  bool verified = false;
  std::string created;  ///< ISO 8601
  std::uint64_t bytes = 0;
  LoggedMetrics metrics;
};
struct InspectedRun {
  std::string run;  ///< its directory
  std::vector<ListedCheckpoint> checkpoints;
  std::optional<BestEvaluation> best_evaluation;  ///< nothing: there was none, or it isn't known
};

struct InspectedTensor {
  std::string name;
  std::string type;
  Json shape;
  std::uint64_t bytes = 0;
  std::string file;
};
struct InspectedCheckpoint {
  std::string path;
  std::uint64_t bytes = 0;
  bool verified = false;
  CheckpointManifest manifest;
  std::vector<InspectedTensor> tensors;
};

/// It can't look: why.
struct InspectionError {
  std::string text;
};

using Inspection = std::variant<InspectedRun, InspectedCheckpoint, InspectionError>;
/// Error (usage): not an object, a field of the wrong type.
Result<Inspection> inspection_from_json(const Json& json);

}  // namespace footplate
