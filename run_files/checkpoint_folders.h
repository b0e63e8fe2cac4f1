#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// In a checkpoint's folder: what it says of itself (docs/checkpoints.md). Written last.
inline constexpr std::string_view kManifestName = "manifest.json";

/// A committed checkpoint's folder, as its name says: "step-00001000", "step-00001000-before-spike",
/// and with ".replaced-…" behind it one that another of the same name has taken the place of.
struct FolderName {
  std::int64_t step = 0;
  std::string tag;  ///< empty: none
  bool replaced = false;
};

inline constexpr std::size_t kLongestTag = 64;

/// Letters, digits, '_' and '-', at most kLongestTag of them: what a tag and a branch may be called. No dot,
/// which sets a folder's own suffixes (".tmp-…") apart.
bool is_tag(std::string_view name);

/// "step-00001000", or with the tag behind it.
std::string folder_name(std::int64_t step, const std::string& tag);

/// Nothing for anything else in a branch's folder, such as a save that isn't committed yet.
std::optional<FolderName> parse_folder_name(const std::string& name);

/// `name` with a suffix that nobody else uses: ".tmp-" for what isn't a checkpoint yet or any more,
/// ".replaced-" as above.
enum class Suffix { temporary, replaced };
std::string with_suffix(const std::string& name, Suffix suffix);
bool is_temporary(const std::string& name);

/// Where a run keeps its checkpoints, one folder a branch: RUN/checkpoints.
std::filesystem::path checkpoints_folder(const std::filesystem::path& run_directory);

/// Where a run keeps the checkpoints of a branch: RUN/checkpoints/BRANCH.
std::filesystem::path branch_folder(const std::filesystem::path& run_directory,
                                    const std::string& branch = "main");

/// Committed checkpoints in a branch's folder by their names, newest first: by step, and within one by
/// `start` and `created` of their manifests. Empty where the folder can't be read. Verifies nothing.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& branch_folder);

/// The folders of a run's branches, the one that was saved into last first. Empty: no checkpoints.
std::vector<std::filesystem::path> list_branches(const std::filesystem::path& run_directory);

/// Error (failed): there are checkpoints, perhaps, and a folder of theirs can't be read.
Result<void> can_list_checkpoints(const std::filesystem::path& run_directory);

/// Whether a checkpoint may be the one that is looked for. Asked newest first, up to the first good one.
using IsGood = std::function<bool(const std::filesystem::path& checkpoint)>;

/// Good enough where nothing is read from it: the ranks verify what they load (runtime/checkpoint/resume.h).
bool has_manifest(const std::filesystem::path& checkpoint);

/// The newest good checkpoint in a branch's folder; empty: none, or no folder.
std::filesystem::path newest_in(const std::filesystem::path& branch_folder,
                                const IsGood& is_good = has_manifest);

/// The newest good checkpoint of the branch that the run saved into last; of an older one where that has
/// none. Empty: none.
std::filesystem::path newest_checkpoint(const std::filesystem::path& run_directory,
                                        const IsGood& is_good = has_manifest);

}  // namespace footplate
