#pragma once

#include <filesystem>
#include <string>

#include "protocol/result.h"

namespace footplate {

/// What a file holds. Errors (usage), with the system's reason: it can't be opened or read. So is a folder,
/// and a file of /proc whose process has ended since it was opened.
Result<std::string> text_of_file(const std::filesystem::path& path);

}  // namespace footplate
