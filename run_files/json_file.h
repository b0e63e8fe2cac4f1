#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

#include "protocol/json.h"
#include "protocol/result.h"

namespace footplate {

/// Whether a write returns only once its content is on the device.
enum class Durable { no, yes };

inline constexpr std::size_t kLargestJsonFile = std::size_t{16} << 20U;

/// Reads one JSON value. Errors (failed), with the file's name: the operating system's, larger than `largest`
/// bytes, not JSON. Any thread.
Result<Json> read_json_file(const std::filesystem::path& path, std::size_t largest = kLargestJsonFile);

/// Writes a file beside `path` and renames it into place: a reader sees the old or the new one whole. On a
/// full disk the new one goes into the reserved room of `path` (protocol/reserved_file.h), if it has any.
/// Error (failed): the operating system's; the old one stays. One thread of a process at a time for one path.
Result<void> write_text_file(const std::filesystem::path& path, std::string_view text,
                             Durable durable = Durable::no);

/// The same of a JSON value.
Result<void> write_json_file(const std::filesystem::path& path, const Json& json,
                             Durable durable = Durable::no);

/// Reads an object, sets the members of `fields` in it, keeps all others, and writes the file. A file that
/// isn't there or isn't an object counts as an empty one. Error (failed): also one that can't be opened.
Result<void> update_json_file(const std::filesystem::path& path, const Json& fields);

}  // namespace footplate
