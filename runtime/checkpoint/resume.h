#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// A checkpoint to go on from.
struct ResumeChoice {
  std::optional<std::filesystem::path> path;  ///< nothing: start fresh
  std::vector<std::string> skipped;           ///< newer ones that didn't verify, one message each
};

/// The newest checkpoint of a branch's folder that verifies. Nothing where there is none, or no folder.
ResumeChoice newest_verified(const std::filesystem::path& branch);

/// What `--resume` means: "auto" is the newest of this run, of the branch that it saved into last, or
/// nothing; otherwise the path of a checkpoint's folder or of a run's. Errors (usage): a path that is
/// neither; (failed): a checkpoint that doesn't verify, with the newest one before it that does, a run that
/// has none.
Result<ResumeChoice> resolve_resume(const std::filesystem::path& run_directory, const std::string& resume);

}  // namespace footplate
