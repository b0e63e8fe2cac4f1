#include "runtime/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <map>
#include <set>

#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/open_file.h"
#include "runtime/checkpoint/refused.h"

namespace footplate {
namespace {

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

/// Where some elements of a tensor are.
struct Part {
  const TensorEntry* entry = nullptr;
  const std::filesystem::path* file = nullptr;
  std::uint64_t first = 0, end = 0;  ///< bytes of the whole tensor
};

/// Of the whole tensor.
const std::string& name_of(const TensorEntry& entry) {
  return entry.slice_of && !entry.slice_of->name.empty() ? entry.slice_of->name : entry.spec.name;
}

std::vector<std::int64_t> shape_of(const TensorEntry& entry) {
  return entry.slice_of ? entry.slice_of->shape : entry.spec.shape;
}

/// Whether the parts of a tensor, sorted, are all of it, once.
Result<void> check_parts(const std::filesystem::path& folder, const std::vector<Part>& parts) {
  const TensorEntry& one = *parts.front().entry;
  const std::string& name = name_of(one);
  std::uint64_t end = 0;
  for (const Part& part : parts) {
    if (part.entry->spec.type != one.spec.type || shape_of(*part.entry) != shape_of(one))
      return refused(*part.file, "its part of tensor '" + name + "' is of another type or shape");
    if (part.first < end || (&part != &parts.front() && part.end == part.first))
      return refused(folder, "two of its files hold the same part of tensor '" + name + "'");
    if (part.first > end) break;
    end = part.end;
  }
  if (end != bytes_of(one.spec.type, shape_of(one)))
    return refused(folder, "its files don't hold all of tensor '" + name + "': bytes from " +
                               std::to_string(end) + " on are missing");
  return {};
}

/// "a and 12 more"
std::string first_of(const std::vector<std::string>& names) {
  return names.front() + (names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " more" : "");
}

}  // namespace

Result<Manifest> read_manifest(const std::filesystem::path& folder, Retries retries) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    return fail(ErrorKind::failed, folder.string() + " is not a checkpoint's folder");
  const auto text = read_text(folder / kManifestName, kMaxManifestBytes, retries);
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
  auto manifest = read_manifest(folder, kReading);
  if (!manifest) return manifest;
  if (auto listed = check_listing(folder, *manifest); !listed) return tl::unexpected(listed.error());
  return manifest;
}

Result<Manifest> verify_checkpoint(const std::filesystem::path& folder) {
  const auto checkpoint = CheckpointReader::open(folder);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  return checkpoint->read().map([&] { return checkpoint->manifest(); });
}

Result<CheckpointReader> CheckpointReader::open(const std::filesystem::path& folder) {
  auto manifest = read_listed_manifest(folder);
  if (!manifest) return tl::unexpected(manifest.error());
  CheckpointReader checkpoint;
  checkpoint.path_ = folder;
  checkpoint.manifest_ = *std::move(manifest);
  for (const auto& listed : checkpoint.manifest_.files) {
    auto file = SafetensorsFile::open(folder / listed.name, listed.bytes);
    if (!file) return tl::unexpected(file.error());
    checkpoint.files_.push_back(*std::move(file));
  }
  if (auto joined = checkpoint.join_parts(); !joined) return tl::unexpected(joined.error());
  return checkpoint;
}

Result<void> CheckpointReader::join_parts() {
  std::map<std::string, std::vector<Part>> parts;
  for (const SafetensorsFile& file : files_)
    for (const TensorEntry& entry : file.header().tensors) {
      const std::uint64_t first =
          entry.slice_of ? static_cast<std::uint64_t>(entry.slice_of->first) * size_of(entry.spec.type) : 0;
      parts[name_of(entry)].push_back({&entry, &file.path(), first, first + entry.end - entry.begin});
    }
  for (auto& [name, of_one] : parts) {
    std::sort(of_one.begin(), of_one.end(), [](const Part& a, const Part& b) { return a.first < b.first; });
    if (auto whole = check_parts(path_, of_one); !whole) return whole;
    const TensorEntry& entry = *of_one.front().entry;
    tensors_.push_back({name, entry.spec.type, shape_of(entry)});
  }
  return {};
}

Result<void> CheckpointReader::read(const Take& take) const {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const auto hash = files_[i].read([&](const TensorEntry& entry, std::uint64_t at, auto block) {
      const auto first = entry.slice_of ? static_cast<std::uint64_t>(entry.slice_of->first) : 0;
      if (take) take(name_of(entry), first * size_of(entry.spec.type) + at, block);
    });
    if (!hash) return tl::unexpected(hash.error());
    if (*hash != manifest_.files[i].sha256)
      return refused(files_[i].path(), "its content is damaged (SHA-256 differs from the manifest's)");
  }
  return {};
}

Result<void> CheckpointReader::matches(std::span<const TensorSpec> expected) const {
  std::map<std::string, TensorSpec> have;
  for (const TensorSpec& spec : tensors_) have.emplace(spec.name, spec);
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
  for (const auto& [name, one] : have) extra.push_back(name);
  if (missing.empty() && different.empty() && extra.empty()) return {};
  std::string reason = "its tensors aren't those of this model";
  if (!missing.empty()) reason += "; missing: " + first_of(missing);
  if (!different.empty()) reason += "; different: " + first_of(different);
  if (!extra.empty()) reason += "; unknown here: " + first_of(extra);
  return refused(path_, reason + ". Resume with the model.* and optim.* settings it was saved with");
}

}  // namespace footplate
