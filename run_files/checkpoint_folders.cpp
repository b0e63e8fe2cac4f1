#include "run_files/checkpoint_folders.h"

#include <algorithm>
#include <charconv>
#include <random>
#include <system_error>
#include <tuple>
#include <utility>

#include "protocol/json_fields.h"
#include "run_files/json_file.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kTemporary = ".tmp-";
constexpr std::string_view kReplaced = ".replaced-";
constexpr std::size_t kStepDigits = 8;  ///< longer steps have more; names then sort by number, not by text

/// Which start of the run made it, and when by the clock of its host, in ISO 8601; 0 and empty where its
/// manifest doesn't say so.
using Made = std::pair<std::int64_t, std::string>;

Made made(const fs::path& checkpoint) {
  const auto manifest = read_json_file(checkpoint / kManifestName);
  return manifest ? Made(integer_of(*manifest, "start", 0), text_of(*manifest, "created")) : Made();
}

/// What orders the checkpoints of a branch, the newest greatest: step, whether it is in force, when it was
/// made, tag.
using Age = std::tuple<std::int64_t, bool, Made, std::string>;

/// In no order.
std::vector<std::pair<Age, fs::path>> checkpoints_in(const fs::path& branch_folder) {
  std::vector<std::pair<Age, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator entry(branch_folder, error), end; !error && entry != end;
       entry.increment(error))
    if (const auto name = parse_folder_name(entry->path().filename().string()))
      found.push_back({{name->step, !name->replaced, made(entry->path()), name->tag}, entry->path()});
  return found;
}

/// When a branch was saved into last. First by the start: hosts that came to lead may have other clocks.
Made saved_into(const fs::path& branch_folder) {
  Made newest;
  for (const auto& [age, path] : checkpoints_in(branch_folder)) newest = std::max(newest, std::get<2>(age));
  return newest;
}

}  // namespace

bool is_tag(std::string_view name) {
  return !name.empty() && name.size() <= kLongestTag && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::string folder_name(std::int64_t step, const std::string& tag) {
  std::string digits = std::to_string(step);
  if (digits.size() < kStepDigits) digits.insert(0, kStepDigits - digits.size(), '0');
  return std::string(kPrefix) + digits + (tag.empty() ? "" : "-" + tag);
}

std::optional<FolderName> parse_folder_name(const std::string& text) {
  if (!text.starts_with(kPrefix)) return std::nullopt;
  const std::size_t dot = text.find('.');
  FolderName name;
  name.replaced = dot != std::string::npos;
  if (name.replaced && !std::string_view(text).substr(dot).starts_with(kReplaced)) return std::nullopt;
  const std::string_view plain = std::string_view(text).substr(0, dot);
  const char* begin = plain.data() + kPrefix.size();
  const char* end = plain.data() + plain.size();
  const auto [rest, error] = std::from_chars(begin, end, name.step);
  if (error != std::errc() || name.step < 0) return std::nullopt;
  if (rest != end) {
    if (*rest != '-') return std::nullopt;
    name.tag.assign(rest + 1, end);
    if (!is_tag(name.tag)) return std::nullopt;
  }
  // One spelling only: "step-7" isn't ours.
  if (folder_name(name.step, name.tag) != plain) return std::nullopt;
  return name;
}

std::string with_suffix(const std::string& name, Suffix suffix) {
  std::random_device random;
  std::string text = name + std::string(suffix == Suffix::temporary ? kTemporary : kReplaced);
  for (int digit = 0; digit < 12; ++digit) text += "0123456789abcdef"[random() % 16];
  return text;
}

bool is_temporary(const std::string& name) {
  return name.starts_with(kPrefix) && name.find(kTemporary) != std::string::npos;
}

fs::path checkpoints_folder(const fs::path& run_directory) {
  return run_directory / "checkpoints";
}

fs::path branch_folder(const fs::path& run_directory, const std::string& branch) {
  return checkpoints_folder(run_directory) / branch;
}

std::vector<fs::path> list_checkpoints(const fs::path& branch_folder) {
  auto found = checkpoints_in(branch_folder);
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return b.first < a.first; });
  std::vector<fs::path> paths;
  for (auto& [age, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::vector<fs::path> list_branches(const fs::path& run_directory) {
  std::vector<std::pair<Made, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator entry(checkpoints_folder(run_directory), error), end; !error && entry != end;
       entry.increment(error))
    if (std::error_code none; is_tag(entry->path().filename().string()) && entry->is_directory(none))
      found.emplace_back(saved_into(entry->path()), entry->path());
  std::sort(found.begin(), found.end(), std::greater<>());
  std::vector<fs::path> folders;
  for (auto& [when, folder] : found) folders.push_back(std::move(folder));
  return folders;
}

Result<void> can_list_checkpoints(const fs::path& run_directory) {
  std::error_code error;
  const fs::path all = checkpoints_folder(run_directory);
  if (fs::symlink_status(all, error).type() == fs::file_type::not_found) return {};
  std::vector<fs::path> folders{all};
  for (fs::directory_iterator entry(all, error), end; !error && entry != end; entry.increment(error))
    if (std::error_code none; is_tag(entry->path().filename().string()) && !entry->is_regular_file(none))
      folders.push_back(entry->path());
  for (const fs::path& folder : folders)
    if (fs::directory_iterator(folder, error); error)
      return fail(ErrorKind::failed,
                  "the run's checkpoints can't be listed: " + folder.string() + ": " + error.message() +
                      "; make them readable again (permissions, a disk that isn't mounted), "
                      "or begin a run of another name");
  return {};
}

bool has_manifest(const fs::path& checkpoint) {
  std::error_code none;
  return fs::exists(checkpoint / kManifestName, none);
}

fs::path newest_in(const fs::path& branch_folder, const IsGood& is_good) {
  const auto all = list_checkpoints(branch_folder);
  const auto newest = std::find_if(all.begin(), all.end(), is_good);
  return newest == all.end() ? fs::path() : *newest;
}

fs::path newest_checkpoint(const fs::path& run_directory, const IsGood& is_good) {
  for (const fs::path& folder : list_branches(run_directory))
    if (fs::path newest = newest_in(folder, is_good); !newest.empty()) return newest;
  return {};
}

}  // namespace footplate
