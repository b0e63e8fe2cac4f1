#pragma once

#include <filesystem>
#include <optional>

namespace footplate::sinks {

/// The file that is replaced by what is written for `path`, behind its links. Nothing: what is there can't be
/// replaced, as a pipe, a device, or a file that has no name any more.
std::optional<std::filesystem::path> replaced_file(const std::filesystem::path& path);

}  // namespace footplate::sinks
