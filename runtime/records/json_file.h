#pragma once

#include <filesystem>

#include "protocol/json.h"
#include "protocol/result.h"

namespace footplate {

/// Writes a file beside `path` and renames it into place: a reader sees the old or the new one whole.
/// `durable`: returns once it is on the device. Error (failed): the operating system's; the old one stays.
Result<void> replace_json_file(const std::filesystem::path& path, const Json& json, bool durable = false);

/// Error (failed): not there, not JSON.
Result<Json> read_json_file(const std::filesystem::path& path);

/// Reads an object, sets the members of `fields` in it, keeps all others, and replaces the file. A file
/// that isn't there or isn't an object counts as an empty one. Error (failed): also one that can't be opened.
Result<void> update_json_file(const std::filesystem::path& path, const Json& fields);

}  // namespace footplate
