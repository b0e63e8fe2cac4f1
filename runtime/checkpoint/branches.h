#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "protocol/result.h"
#include "runtime/checkpoint/manifest.h"

namespace footplate {

/// A checkpoint of a run, and what its manifest says.
struct FoundCheckpoint {
  std::filesystem::path path;
  Manifest manifest;
};

/// Where a run is, for what a reference to one of its checkpoints means.
struct RunPosition {
  std::string branch;                  ///< empty: the one that was saved into last
  std::int64_t step = 0;               ///< completed
  std::optional<BestEvaluation> best;  ///< nothing: not known, and the manifests' marks count
};

/// What `ref` means to a run: a step ("300"), a relative one ("-500"), a tag, "best", "latest", the name of a
/// checkpoint's folder, or its path (absolute, or from the run's folder on). A step takes the nearest earlier
/// checkpoint, "best" that of the best evaluation's step alone. The run's branch counts for more than the
/// others, and of those the one that was saved into last. Reads manifests only: the tensors may still be
/// damaged. Errors (usage): nothing is meant by it, with what there is; a path outside the run.
Result<FoundCheckpoint> find_checkpoint(const std::filesystem::path& run_directory, const std::string& ref,
                                        const RunPosition& now);

/// A name for a branch that begins at `step`: `wanted`, or where that is empty "from-300", "from-300-2", ….
/// Errors (usage): there is a branch `wanted` already, or it can't be a folder's name.
Result<std::string> new_branch(const std::filesystem::path& run_directory, const std::string& wanted,
                               std::int64_t step);

}  // namespace footplate
