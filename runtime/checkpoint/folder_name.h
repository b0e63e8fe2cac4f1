#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace footplate {

/// A committed checkpoint's folder, as its name says: "step-00001000", "step-00001000-before-spike",
/// and with ".replaced-…" behind it one that another of the same name has taken the place of.
struct FolderName {
  std::int64_t step = 0;
  std::string tag;  ///< empty: none
  bool replaced = false;
};

/// "step-00001000", or with the tag behind it.
std::string folder_name(std::int64_t step, const std::string& tag);

/// Nothing for anything else in a branch's folder, such as a save that isn't committed yet.
std::optional<FolderName> parse_folder_name(const std::string& name);

/// `name` with a suffix that nobody else uses: ".tmp-" for what isn't a checkpoint yet or any more,
/// ".replaced-" as above.
enum class Suffix { temporary, replaced };
std::string with_suffix(const std::string& name, Suffix suffix);
bool is_temporary(const std::string& name);

/// Committed checkpoints in a branch's folder by their names, newest first: by step, and by their manifests'
/// `created` within one. Empty where the folder can't be read.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& branch_folder);

}  // namespace footplate
