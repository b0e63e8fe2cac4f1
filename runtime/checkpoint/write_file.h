#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <system_error>

#include "protocol/result.h"
#include "runtime/checkpoint/disk.h"

namespace footplate {

/// What is told while a file is written: bytes since it was told last, and none while the next try is waited
/// for. False: the file is given up, which is
/// the error operation_canceled. May be empty.
using Wrote = std::function<bool(std::size_t bytes)>;

/// A new file of these pieces, on the device once it returns. `sha256`, unless null, gets the hash of what
/// was to be written. Hashed and written block by block, while a block is in the processor's cache.
std::error_code write_file(Disk& disk, const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> pieces, std::string* sha256,
                           const Wrote& wrote = {});

/// Whether a file that was written to the device holds exactly these pieces. A large one then leaves the
/// system's cache, which training's own files may need. Errors (failed): what differs, or the operating
/// system's.
Result<void> read_back(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces);

}  // namespace footplate
