#include "runtime/checkpoint/checkpoint_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "protocol/iso_time.h"
#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/explain.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/sha256.h"

namespace footplate {
namespace fs = std::filesystem;
namespace {

/// Whether a checkpoint has this file, of these bytes: `entry` gets their hash.
bool has_same_file(const fs::path& checkpoint, std::int64_t step, ManifestFile& entry,
                   const std::vector<std::span<const std::byte>>& pieces) {
  if (checkpoint.empty()) return false;
  const auto manifest = read_manifest(checkpoint);
  if (!manifest || manifest->step != step) return false;
  const auto same = std::find_if(
      manifest->files.begin(), manifest->files.end(),
      [&](const ManifestFile& one) { return one.name == entry.name && one.bytes == entry.bytes; });
  if (same == manifest->files.end()) return false;
  Sha256 hash;
  for (const auto piece : pieces) hash.add(piece);
  entry.sha256 = hash.hex();
  return entry.sha256 == same->sha256;
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, Disk& disk, Retries retries, Tell tell)
    : folder_(std::move(folder)), disk_(disk), retries_(retries), tell_(std::move(tell)) {}

template <class T>
Result<T> CheckpointStore::retried(const Wrote& wrote, const std::function<Result<T>()>& attempt,
                                   const std::function<void()>& undo) {
  for (Tries tries(retries_);;) {
    failed_with_.clear();
    auto outcome = attempt();
    if (outcome) return outcome;
    const bool has_another = tries.has_another(failed_with_);
    undo();
    if (!has_another) return outcome;
    if (tell_) {
      const std::chrono::duration<double> pause = tries.pause();
      tell_(fmt::format("{}. It is tried again in {} s", outcome.error().message, pause.count()));
    }
    if (!tries.wait([&] { return !wrote || wrote(0); })) return outcome;
    undo();  // what failed with the attempt may be possible now
  }
}

/// The device's doing, as far as anybody knows.
Error CheckpointStore::unreadable(const Error& error) {
  failed_with_ = std::make_error_code(std::errc::io_error);
  return {ErrorKind::failed, "what was just saved can't be read back: " + error.message +
                                 ". The older checkpoints are untouched"};
}

Error CheckpointStore::explain(const std::string& doing, const std::error_code& error) {
  failed_with_ = error;
  return {ErrorKind::failed, "can't save a checkpoint in " + folder_.string() + ": " + doing + ": " +
                                 explain_disk_error(error, folder_) +
                                 ". The older checkpoints are untouched"};
}

Result<void> CheckpointStore::make_folders() {
  // The run's folder is there; "checkpoints" and the branch's may not be.
  for (const auto& folder : {folder_.parent_path(), folder_}) {
    std::error_code error = disk_.make_folder(folder);
    if (error == std::errc::file_exists) continue;
    if (!error) error = disk_.sync_folder(folder.parent_path());
    if (error) return tl::unexpected(explain("making the folder", error));
  }
  return {};
}

Result<fs::path> CheckpointStore::begin(std::int64_t step, const std::string& tag) {
  if (!tag.empty() && !is_tag(tag))
    return fail(ErrorKind::usage,
                "a checkpoint can't be tagged '" + tag + "'; a tag is 1 to 64 letters, digits, '_' and '-'");
  if (auto made = make_folders(); !made) return tl::unexpected(made.error());
  fs::path temporary = folder_ / with_suffix(folder_name(step, tag), Suffix::temporary);
  if (auto error = disk_.make_folder(temporary)) return tl::unexpected(explain("making its folder", error));
  return temporary;
}

Result<ManifestFile> CheckpointStore::write_part(const fs::path& temporary, std::int64_t step,
                                                 const std::string& file, std::span<const TensorView> tensors,
                                                 const fs::path& alike, const Wrote& wrote) {
  return retried<ManifestFile>(
      wrote, [&] { return write_tensors(temporary, step, file, tensors, alike, wrote); },
      [&] { disk_.remove(temporary / file); });
}

Result<ManifestFile> CheckpointStore::write_tensors(const fs::path& temporary, std::int64_t step,
                                                    const std::string& file,
                                                    std::span<const TensorView> tensors,
                                                    const fs::path& alike, const Wrote& wrote) {
  const auto header = safetensors_header(tensors);
  if (!header) return tl::unexpected(header.error());
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(*header))};
  for (const auto& tensor : tensors) pieces.push_back(tensor.bytes);
  ManifestFile entry{file, 0, {}};
  for (const auto piece : pieces) entry.bytes += piece.size();
  const fs::path path = temporary / file;
  // No link: another file system, or too many names.
  if (has_same_file(alike, step, entry, pieces) && !disk_.link(alike / file, path)) {
    if (read_back(path, pieces)) return entry;
    if (auto error = disk_.remove(path))  // it is damaged
      return tl::unexpected(explain("removing a damaged " + file, error));
  }
  if (auto error = write_file(disk_, path, pieces, &entry.sha256, wrote))
    return tl::unexpected(explain("writing " + file, error));
  // What the disk kept is checked before anybody can take it for a checkpoint.
  if (const auto intact = read_back(path, pieces); !intact) return tl::unexpected(unreadable(intact.error()));
  return entry;
}

Result<std::uint64_t> CheckpointStore::write_manifest(const fs::path& temporary, const Manifest& manifest) {
  const std::string text = to_text(manifest);
  const std::span<const std::byte> only[] = {std::as_bytes(std::span(text))};
  if (auto error = write_file(disk_, temporary / kManifestName, only, nullptr))
    return tl::unexpected(explain("writing the manifest", error));
  return text.size();
}

Result<void> CheckpointStore::put_in_place(const fs::path& temporary, const fs::path& target) {
  if (const auto whole = read_listed_manifest(temporary); !whole)
    return tl::unexpected(unreadable(whole.error()));
  std::error_code ignored;
  if (fs::exists(target, ignored)) {
    // An earlier one of the same step (a run that went on from before it, or a damaged one): it stays
    // findable under its second name until the new one is in place.
    const fs::path aside = folder_ / with_suffix(target.filename().string(), Suffix::replaced);
    if (auto error = disk_.rename(target, aside))
      return tl::unexpected(explain("moving the earlier one of this step aside", error));
  }
  if (auto error = disk_.rename(temporary, target)) return tl::unexpected(explain("committing it", error));
  if (auto error = disk_.sync_folder(folder_)) {
    auto told = explain("syncing the folder", error);
    failed_with_.clear();  // it has its name, and nobody knows more after another try
    return tl::unexpected(std::move(told));
  }
  return {};
}

Result<Stored> CheckpointStore::commit(const fs::path& temporary, Manifest manifest, Retention keep,
                                       const Wrote& wrote) {
  manifest.created = iso_time(std::chrono::system_clock::now());
  return retried<std::uint64_t>(
             wrote, [&] { return write_manifest(temporary, manifest); },
             [&] { disk_.remove(temporary / kManifestName); })
      .and_then([&](std::uint64_t bytes) { return place(temporary, manifest, bytes, keep); });
}

/// Tried once: after a folder's sync that failed nobody knows which of its names are on the device.
Result<Stored> CheckpointStore::place(const fs::path& temporary, const Manifest& manifest,
                                      std::uint64_t manifest_bytes, const Retention& keep) {
  if (auto error = disk_.sync_folder(temporary)) return tl::unexpected(explain("syncing its folder", error));
  Stored stored{folder_ / folder_name(manifest.step, manifest.tag), manifest_bytes, {}};
  for (const ManifestFile& file : manifest.files) stored.bytes += file.bytes;
  if (auto placed = put_in_place(temporary, stored.path); !placed) return tl::unexpected(placed.error());
  retain(keep, stored.path, stored.notes);
  return stored;
}

void CheckpointStore::abandon(const fs::path& temporary) {
  remove_temporary(temporary);  // gives a full disk its space back; else the next start does
}

Result<Stored> CheckpointStore::save(Manifest manifest, const std::string& file,
                                     std::span<const TensorView> tensors, Retention keep,
                                     const fs::path& alike, const Wrote& wrote) {
  fs::path temporary;
  const auto attempt = [&] {
    return begin(manifest.step, manifest.tag)
        .and_then([&](const fs::path& made) {
          temporary = made;
          return write_tensors(temporary, manifest.step, file, tensors, alike, wrote);
        })
        .and_then([&](const ManifestFile& part) {
          manifest.files = {part};
          manifest.created = iso_time(std::chrono::system_clock::now());
          return write_manifest(temporary, manifest);
        })
        .and_then([&](std::uint64_t bytes) { return place(temporary, manifest, bytes, keep); });
  };
  return retried<Stored>(wrote, attempt, [&] { abandon(temporary); });
}

Result<fs::path> CheckpointStore::retag(const fs::path& path, const std::string& tag) {
  auto manifest = read_manifest(path);
  if (!manifest) return tl::unexpected(manifest.error());
  const fs::path target = folder_ / folder_name(manifest->step, tag);
  if (target == path) return target;
  std::error_code none;
  if (tag.empty() && fs::exists(target, none)) return remove(path).map([&] { return target; });
  manifest->tag = tag;
  const fs::path temporary = folder_ / with_suffix(target.filename().string(), Suffix::temporary);
  const auto attempt = [&]() -> Result<void> {
    if (auto error = disk_.make_folder(temporary)) return tl::unexpected(explain("making its folder", error));
    for (const ManifestFile& file : manifest->files)
      if (auto error = disk_.link(path / file.name, temporary / file.name))
        return tl::unexpected(explain("giving " + file.name + " a second name", error));
    if (const auto written = write_manifest(temporary, *manifest); !written)
      return tl::unexpected(written.error());
    if (auto error = disk_.sync_folder(temporary))
      return tl::unexpected(explain("syncing its folder", error));
    if (const auto intact = verify_checkpoint(temporary); !intact)
      return tl::unexpected(unreadable(intact.error()));
    return put_in_place(temporary, target);
  };
  return retried<void>({}, attempt, [&] { abandon(temporary); })
      .and_then([&] { return remove(path); })
      .map([&] { return target; });
}

Result<void> CheckpointStore::remove(const fs::path& path) {
  if (auto error = remove_checkpoint(path))
    return fail(ErrorKind::failed,
                "can't remove " + path.string() + ": " + explain_disk_error(error, folder_));
  return {};
}

void CheckpointStore::retain(const Retention& keep, const fs::path& newest, std::vector<std::string>& notes) {
  std::size_t kept = 0;
  std::size_t best_seen = 0;
  for (const auto& path : list_checkpoints(folder_)) {
    const auto name = parse_folder_name(path.filename().string());
    bool remove = name->replaced && folder_name(name->step, name->tag) == newest.filename();
    if (!remove) {
      // One that can't be read is left for a person to look at, and takes nobody's place.
      const auto manifest = read_manifest(path);
      if (!manifest || !manifest->tag.empty()) continue;
      const bool is_best = manifest->best && best_seen < std::max<std::size_t>(1, keep.best);
      if (manifest->best) ++best_seen;
      if (is_best || path == newest) {
        if (!is_best && !manifest->only_best) ++kept;
        continue;
      }
      remove = manifest->only_best || (++kept > keep.newest && keep.newest != 0);
    }
    if (!remove) continue;
    if (auto error = remove_checkpoint(path))
      notes.push_back("can't remove " + path.string() + ": " + explain_disk_error(error, folder_));
  }
}

std::error_code CheckpointStore::remove_checkpoint(const fs::path& path) {
  // Renamed first, so that a removal that is interrupted never leaves a half checkpoint.
  const std::string plain = path.filename().string();
  const fs::path temporary = folder_ / with_suffix(plain.substr(0, plain.find('.')), Suffix::temporary);
  if (auto error = disk_.rename(path, temporary)) return error;
  return remove_temporary(temporary);
}

std::error_code CheckpointStore::remove_temporary(const fs::path& path) {
  std::error_code error;
  fs::directory_iterator entry(path, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    if (auto failed = disk_.remove(entry->path())) return failed;
  return error ? error : disk_.remove(path);
}

std::vector<std::string> CheckpointStore::remove_leftovers() {
  std::vector<std::string> notes;
  std::vector<fs::path> leftovers;
  std::error_code error;
  fs::directory_iterator entry(folder_, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    if (is_temporary(entry->path().filename().string())) leftovers.push_back(entry->path());
  for (const auto& path : leftovers) {
    const auto failed = remove_temporary(path);
    notes.push_back((failed ? "can't remove " : "removed ") + path.filename().string() +
                    (failed ? ": " + failed.message() : ", left by an interrupted save"));
  }
  for (const auto& path : list_checkpoints(folder_)) {
    const auto name = parse_folder_name(path.filename().string());
    if (!name->replaced || !verify_checkpoint(folder_ / folder_name(name->step, name->tag))) continue;
    if (!remove_checkpoint(path))
      notes.push_back("removed " + path.filename().string() + ", which has been replaced");
  }
  return notes;
}

}  // namespace footplate
