#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// All regular files below `folder` that end in `extension` (".wav"; empty: all), sorted by path; hidden
/// files and folders are left out. Errors: there are none, or the folder can't be read at all (usage); it
/// can't be read to its end (failed).
Result<std::vector<std::filesystem::path>> files_below(const std::filesystem::path& folder,
                                                       const std::string& extension = "");

}  // namespace footplate
