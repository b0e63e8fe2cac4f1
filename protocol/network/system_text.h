#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace footplate {

// Reading the small text files in which Linux says things about itself (/proc, /sys).

/// A file of at most 1 MiB, as it is; empty where it can't be read.
std::string read_text(const std::filesystem::path& path);

std::vector<std::string> lines_of(std::string_view text);
std::vector<std::string> words_of(const std::string& line);  ///< separated by blanks

/// The number that `text` begins with; nothing where it doesn't.
std::optional<std::int64_t> leading_number(std::string_view text, int base = 10);
std::optional<std::int64_t> number_in(const std::filesystem::path& file);

/// Names in a folder, sorted; none where there is no such folder.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace footplate
