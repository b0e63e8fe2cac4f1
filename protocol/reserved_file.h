#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace footplate {

/// Room on the disk for a file that has to be true even when the disk is full: result.json, run.json. It is
/// PATH.reserved, filled beforehand; writing over it needs no room, and it changes places with PATH in one
/// step. Any process of a run.
///
/// Makes it, `bytes` large, where it isn't there yet. False where the disk refuses.
bool reserve_room(const std::filesystem::path& path, std::size_t bytes);

/// Gives `path` the content `text` out of the reserved room. A reader sees the old or the new content. False
/// where there is none, it is too small, or the file system can't exchange two files.
bool write_into_reserved_room(const std::filesystem::path& path, std::string_view text);

void give_room_back(const std::filesystem::path& path);

}  // namespace footplate
