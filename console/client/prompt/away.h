#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "protocol/json.h"

namespace footplate {

/// When this user last looked at a run, and where it was then. Kept in the user's state folder.
struct Left {
  std::string time;  ///< ISO, UTC
  std::int64_t step = 0;
  double loss = 0;  ///< NaN where unknown
};

/// Nothing where this user has not been attached to it yet.
std::optional<Left> read_left(const std::filesystem::path& run_directory);

/// Best effort. `status` is the run's.
void keep_left(const std::filesystem::path& run_directory, const Json& status);

/// "away 7 h 12 m: 48211 -> 93020 · loss 2.31 -> 2.08 · ann: optim.lr_scale 1 -> 0.5": what happened between
/// then and `status`, from the run's events.jsonl.
std::string away_text(const std::filesystem::path& run_directory, const Left& left, const Json& status);

}  // namespace footplate
