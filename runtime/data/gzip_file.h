#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// All bytes of a file; of one that gzip has written, those that it had before. Errors (usage), each with the
/// path: it can't be read, is empty, damaged, cut short, or has more than 2 GiB.
Result<std::vector<std::uint8_t>> read_file_or_gzip(const std::filesystem::path& path);

}  // namespace footplate
