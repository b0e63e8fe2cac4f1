#pragma once

#include <filesystem>
#include <string>

#include "protocol/result.h"

namespace footplate {

/// A new directory's log folder, and the empty file of the batch lines.
Result<void> make_logs(const std::filesystem::path& directory);

/// Where rank 0's lines are kept: log/batch.log.
std::filesystem::path batch_log(const std::filesystem::path& directory);
std::filesystem::path launcher_log(const std::filesystem::path& directory);

/// The last lines of the launcher's log that are of the newest start.
std::string launcher_words(const std::filesystem::path& directory);

/// A line of that log sets a start's lines apart from those of the starts before it: this, and its number.
inline constexpr const char* kStartMark = "--- start ";

}  // namespace footplate
