#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <system_error>

#include "runtime/checkpoint/disk.h"

namespace footplate {

/// Creates `path` from `pieces`, returns once it is on the device. `sha256` (may be null) receives the
/// hash of all bytes, taken from memory, so that what the disk made of them can be checked against it.
std::error_code write_file(Disk& disk, const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> pieces, std::string* sha256);

}  // namespace footplate
