#include "runtime/tools/list_checkpoints.h"

#include <cstdio>
#include <limits>
#include <vector>

#include "protocol/exit_codes.h"
#include "protocol/json.h"
#include "run_files/checkpoint_folders.h"
#include "run_files/run_file.h"
#include "runtime/checkpoint/branches.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/tensor.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAnyStep = std::numeric_limits<std::int64_t>::max();

std::uint64_t bytes_of(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const ManifestFile& file : manifest.files) bytes += file.bytes;
  return bytes;
}

Json all_of(const Manifest& manifest) {
  Json json = {{"run", manifest.run},           {"start", manifest.start},
               {"step", manifest.step},         {"world_size", manifest.world_size},
               {"branch", manifest.branch},     {"tag", manifest.tag},
               {"best", manifest.best},         {"created", manifest.created},
               {"journal", manifest.journal},   {"settings", manifest.settings},
               {"progress", manifest.progress}, {"store", manifest.store},
               {"orders", manifest.orders},     {"metrics", manifest.metrics},
               {"files", Json::array()}};
  for (const ManifestFile& file : manifest.files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  return json;
}

Result<Manifest> look(const fs::path& checkpoint, bool verify) {
  return verify ? verify_checkpoint(checkpoint) : read_manifest(checkpoint);
}

Result<Json> tensors_of(const fs::path& checkpoint, const Manifest& manifest) {
  Json list = Json::array();
  for (const ManifestFile& file : manifest.files) {
    const auto opened = SafetensorsFile::open(checkpoint / file.name, file.bytes);
    if (!opened) return tl::unexpected(opened.error());
    for (const TensorEntry& entry : opened->header().tensors) {
      list.push_back({{"name", entry.spec.name},
                      {"type", to_string(entry.spec.type)},
                      {"shape", entry.spec.shape},
                      {"bytes", entry.end - entry.begin},
                      {"file", file.name}});
      if (const auto& whole = entry.slice_of) {
        list.back()["slice_of"] = {{"shape", whole->shape}, {"first", whole->first}};
        if (!whole->name.empty()) list.back()["slice_of"]["name"] = whole->name;
      }
    }
  }
  return list;
}

/// What is printed.
struct Inspected {
  Json json;
  bool damaged = false;  ///< a checkpoint of the run can't be used
};

Result<Inspected> inspect_checkpoint(const fs::path& path, const InspectOptions& options) {
  const auto manifest = look(path, options.verify);
  if (!manifest) return tl::unexpected(manifest.error());
  Json json = {{"path", path.string()}, {"bytes", bytes_of(*manifest)}, {"manifest", all_of(*manifest)}};
  if (options.verify) json["verified"] = true;
  if (!options.tensors) return Inspected{std::move(json)};
  auto tensors = tensors_of(path, *manifest);
  if (!tensors) return tl::unexpected(tensors.error());
  json["tensors"] = *std::move(tensors);
  return Inspected{std::move(json)};
}

/// The best evaluation that a run's record tells of; nothing: an older run's, or there was none.
std::optional<BestEvaluation> best_of(const fs::path& run) {
  const auto record = read_run_file(run);
  return record ? record->best_evaluation : std::nullopt;
}

/// For the list of a run's.
Json summary(const fs::path& path, const Manifest& manifest, bool best, bool verified) {
  Json json = {{"path", path.string()},       {"bytes", bytes_of(manifest)}, {"branch", manifest.branch},
               {"step", manifest.step},       {"tag", manifest.tag},         {"best", best},
               {"created", manifest.created}, {"metrics", manifest.metrics}};
  if (verified) json["verified"] = true;
  return json;
}

Inspected inspect_run(const InspectOptions& options) {
  Inspected found;
  Json list = Json::array();
  const auto best = best_of(options.path);
  const auto marked = find_checkpoint(options.path, "best", {"", kAnyStep, best});
  for (const fs::path& branch : list_branches(options.path))
    for (const fs::path& checkpoint : list_checkpoints(branch)) {
      const auto manifest = look(checkpoint, options.verify);
      found.damaged = found.damaged || !manifest;
      const bool is_best = marked && marked->path == checkpoint;
      list.push_back(manifest ? summary(checkpoint, *manifest, is_best, options.verify)
                              : Json{{"path", checkpoint.string()},
                                     {"error", manifest.error().message},
                                     {"branch", branch.filename().string()}});
    }
  found.json = {{"run", options.path.string()}, {"checkpoints", std::move(list)}};
  if (best) found.json["best_evaluation"] = to_json(*best);
  return found;
}

Result<Inspected> look_at(const InspectOptions& options) {
  std::error_code none;
  if (!options.ref.empty()) {
    RunPosition run{"", kAnyStep, best_of(options.path)};
    if (options.ref.front() == '-')
      if (const auto last = find_checkpoint(options.path, "latest", run)) run.step = last->manifest.step;
    const auto found = find_checkpoint(options.path, options.ref, run);
    if (!found) return tl::unexpected(found.error());
    return inspect_checkpoint(found->path, options);
  }
  if (fs::exists(options.path / kManifestName, none)) return inspect_checkpoint(options.path, options);
  if (fs::exists(options.path / "run.json", none) || fs::is_directory(options.path / "checkpoints", none))
    return inspect_run(options);
  return fail(ErrorKind::usage, options.path.string() +
                                    " is neither a checkpoint (it has no manifest.json) nor a run (no "
                                    "run.json); footplate ls -a has your runs");
}

}  // namespace

int inspect(const InspectOptions& options) {
  const auto found = look_at(options);
  if (!found) {
    std::printf("%s\n", to_line({{"error", found.error().message}}).c_str());
    return static_cast<int>(found.error().kind == ErrorKind::usage ? ExitCode::usage : ExitCode::failed);
  }
  std::printf("%s\n", to_line(found->json).c_str());
  return static_cast<int>(found->damaged ? ExitCode::failed : ExitCode::done);
}

}  // namespace footplate
