#pragma once

#include <filesystem>

#include "protocol/json.h"

namespace footplate {

/// Reads one JSON value. Errors (failed): can't be read, larger than 16 MiB, not JSON; with the file's name.
Result<Json> read_json_file(const std::filesystem::path& path);

/// Replaces `path` by rename, so that a reader sees the old or the new content and never half of it.
Result<void> write_json_file(const std::filesystem::path& path, const Json& json);

}  // namespace footplate
