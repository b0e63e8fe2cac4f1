#include "runtime/checkpoint/folder_name.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <random>
#include <system_error>
#include <tuple>

#include "protocol/json.h"
#include "runtime/checkpoint/manifest.h"

namespace footplate {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kTemporary = ".tmp-";
constexpr std::string_view kReplaced = ".replaced-";
constexpr std::size_t kStepDigits = 8;  ///< longer steps have more; names then sort by number, not by text

}  // namespace

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

namespace {

/// When, as its manifest has it; empty where that can't be read.
std::string created(const std::filesystem::path& checkpoint) {
  std::ifstream file(checkpoint / kManifestName);
  const Json manifest = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  const auto time = manifest.is_object() ? manifest.find("created") : manifest.end();
  return time != manifest.end() && time->is_string() ? time->get<std::string>() : "";
}

}  // namespace

std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& branch_folder) {
  using Rank = std::tuple<std::int64_t, bool, std::string, std::string>;
  std::vector<std::pair<Rank, std::filesystem::path>> found;
  std::error_code error;
  std::filesystem::directory_iterator entry(branch_folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    if (const auto name = parse_folder_name(entry->path().filename().string()))
      found.push_back({{name->step, !name->replaced, created(entry->path()), name->tag}, entry->path()});
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return b.first < a.first; });
  std::vector<std::filesystem::path> paths;
  for (auto& item : found) paths.push_back(std::move(item.second));
  return paths;
}

}  // namespace footplate
