#include "runtime/checkpoint/loaded_checkpoint.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/open_file.h"
#include "runtime/checkpoint/refused.h"
#include "runtime/checkpoint/sha256.h"

namespace footplate {
namespace {

constexpr std::size_t kHashPiece = 1 << 20;

/// Whether the folder holds the manifest's files and nothing else.
Result<void> check_listing(const std::filesystem::path& folder, const Manifest& manifest) {
  std::set<std::string> expected{std::string(kManifestName)};
  for (const auto& file : manifest.files) expected.insert(file.name);
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    if (const std::string name = entry->path().filename().string(); expected.erase(name) == 0)
      return refused(folder, "it holds '" + name + "', which its manifest doesn't list");
  if (error) return refused(folder, error.message());
  if (!expected.empty()) return refused(folder, "its file " + *expected.begin() + " is missing");
  return {};
}

Result<void> check_hash(const std::filesystem::path& path, const ManifestFile& file,
                        const std::string& hash) {
  if (hash != file.sha256)
    return refused(path, "its content is damaged (SHA-256 differs from the manifest's)");
  return {};
}

Result<void> verify_file(const std::filesystem::path& path, const ManifestFile& expected) {
  const auto file = OpenFile::open(path);
  if (!file) return tl::unexpected(file.error());
  if (file->size() != expected.bytes)
    return refused(
        path, "it has " + std::to_string(file->size()) + " bytes, not " + std::to_string(expected.bytes));
  Sha256 hash;
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::uint64_t>(expected.bytes, kHashPiece)));
  for (std::uint64_t at = 0; at < expected.bytes; at += piece.size()) {
    const auto part = std::span(piece).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), expected.bytes - at)));
    if (auto read = file->read(part, at); !read) return read;
    hash.add(part);
  }
  return check_hash(path, expected, hash.hex());
}

/// "a and 12 more"
std::string first_of(const std::vector<std::string>& names) {
  return names.front() + (names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " more" : "");
}

}  // namespace

Result<Manifest> read_manifest(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    return fail(ErrorKind::failed, folder.string() + " is not a checkpoint's folder");
  const auto text = read_text(folder / kManifestName, kMaxManifestBytes);
  if (!text) return tl::unexpected(text.error());
  auto manifest = manifest_from_text(*text);
  if (!manifest) return refused(folder, manifest.error().message);
  // A copy may be called anything; a name that looks like ours has to be true.
  const auto name = parse_folder_name(folder.filename().string());
  if (name && (name->step != manifest->step || name->tag != manifest->tag))
    return refused(folder, "its manifest is that of " + folder_name(manifest->step, manifest->tag));
  return manifest;
}

Result<Manifest> read_listed_manifest(const std::filesystem::path& folder) {
  auto manifest = read_manifest(folder);
  if (!manifest) return manifest;
  if (auto listed = check_listing(folder, *manifest); !listed) return tl::unexpected(listed.error());
  return manifest;
}

Result<Manifest> verify_checkpoint(const std::filesystem::path& folder) {
  auto manifest = read_listed_manifest(folder);
  if (!manifest) return manifest;
  for (const auto& file : manifest->files)
    if (auto intact = verify_file(folder / file.name, file); !intact) return tl::unexpected(intact.error());
  return manifest;
}

Result<LoadedCheckpoint> LoadedCheckpoint::read(const std::filesystem::path& folder) {
  auto manifest = read_listed_manifest(folder);
  if (!manifest) return tl::unexpected(manifest.error());
  LoadedCheckpoint loaded;
  loaded.path_ = folder;
  loaded.manifest_ = *std::move(manifest);
  std::set<std::string> names;
  for (const auto& listed : loaded.manifest_.files) {
    auto file = SafetensorsFile::read(folder / listed.name, listed.bytes);
    if (!file) return tl::unexpected(file.error());
    if (auto intact = check_hash(folder / listed.name, listed, sha256_hex(file->bytes())); !intact)
      return tl::unexpected(intact.error());
    for (const auto& entry : file->header().tensors)
      if (!names.insert(entry.spec.name).second)
        return refused(folder, "two of its files hold tensor '" + entry.spec.name + "'");
    loaded.files_.push_back(*std::move(file));
  }
  return loaded;
}

std::vector<TensorView> LoadedCheckpoint::tensors() const {
  std::vector<TensorView> views;
  for (const auto& file : files_)
    for (const auto& entry : file.header().tensors)
      views.push_back({entry.spec.name, entry.spec.type, entry.spec.shape, file.data(entry)});
  return views;
}

std::optional<std::span<const std::byte>> LoadedCheckpoint::find(std::string_view name) const {
  for (const auto& file : files_)
    for (const auto& entry : file.header().tensors)
      if (entry.spec.name == name) return file.data(entry);
  return std::nullopt;
}

Result<void> LoadedCheckpoint::matches(std::span<const TensorSpec> expected) const {
  std::map<std::string, TensorView> have;
  for (auto& view : tensors()) have.emplace(view.name, view);
  std::vector<std::string> missing;
  std::vector<std::string> different;
  for (const auto& spec : expected) {
    const auto found = have.extract(spec.name);
    if (found.empty()) {
      missing.push_back(spec.name);
    } else if (found.mapped().type != spec.type || found.mapped().shape != spec.shape) {
      different.push_back(spec.name + " (here " + describe(found.mapped().type, found.mapped().shape) +
                          ", the model has " + describe(spec.type, spec.shape) + ")");
    }
  }
  std::vector<std::string> extra;
  for (const auto& [name, view] : have) extra.push_back(name);
  if (missing.empty() && different.empty() && extra.empty()) return {};
  std::string reason = "its tensors aren't those of this model";
  if (!missing.empty()) reason += "; missing: " + first_of(missing);
  if (!different.empty()) reason += "; different: " + first_of(different);
  if (!extra.empty()) reason += "; unknown here: " + first_of(extra);
  return refused(path_, reason + ". Resume with the model.* and optim.* settings it was saved with");
}

}  // namespace footplate
