#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "console/client/prompt/left_json.h"
#include "protocol/messages/run_status.h"

namespace footplate {

/// Nothing where this user has not been attached to it yet.
std::optional<Left> read_left(const std::filesystem::path& run_directory);

/// Best effort. `status` is the run's.
void keep_left(const std::filesystem::path& run_directory, const RunStatus& status);

/// "away 7 h 12 m: 48211 -> 93020 · loss 2.31 -> 2.08 · ann: optim.lr_scale 1 -> 0.5": what happened between
/// then and `status`, from the run's events.jsonl.
std::string away_text(const std::filesystem::path& run_directory, const Left& left, const RunStatus& status);

}  // namespace footplate
