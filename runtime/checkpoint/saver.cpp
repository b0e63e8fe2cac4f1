#include "runtime/checkpoint/saver.h"

#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/loaded_checkpoint.h"
#include "runtime/checkpoint/resume.h"

namespace footplate {
namespace {

constexpr const char* kFileOfRank0 = "rank-0.safetensors";
constexpr std::size_t kMostOrderBytes = kMaxManifestBytes / 4;

TensorType tensor_type(DataType type) {
  switch (type) {
    case DataType::float32:
      return TensorType::float32;
    case DataType::float64:
      return TensorType::float64;
    case DataType::int64:
      return TensorType::int64;
    case DataType::uint8:
      return TensorType::uint8;
  }
  return TensorType::uint8;
}

/// Error (failed): an entry that isn't replicated.
Result<std::vector<TensorSpec>> specs_of(const StateTable& state) {
  std::vector<TensorSpec> specs;
  for (const auto& entry : state.entries()) {
    if (entry.placement != Placement::replicated)
      return fail(ErrorKind::failed,
                  "'" + entry.name + "' isn't replicated: sharded and local state can't be saved yet");
    specs.push_back({entry.name, tensor_type(entry.type), entry.shape});
  }
  return specs;
}

/// A state table's entries as tensors, with copies of those that are a device's.
struct HostTensors {
  std::vector<TensorView> views;
  std::vector<std::vector<std::byte>> copies;  ///< what some of the views are of
};

Result<HostTensors> on_host(const StateTable& state) {
  const auto specs = specs_of(state);
  if (!specs) return tl::unexpected(specs.error());
  HostTensors tensors;
  for (std::size_t i = 0; i < specs->size(); ++i) {
    const StateEntry& entry = state.entries()[i];
    std::vector<std::byte> copy;
    const auto bytes = entry.on_host(copy);
    const TensorSpec& spec = (*specs)[i];
    tensors.views.push_back({spec.name, spec.type, spec.shape, bytes});
    tensors.copies.push_back(std::move(copy));  // its memory stays where it is
  }
  return tensors;
}

}  // namespace

Json within_a_manifest(Json orders, const std::function<void(const std::string&)>& warn) {
  std::size_t bytes = 0;
  std::size_t fit = 0;
  for (; fit < orders.size(); ++fit) {
    bytes += orders[fit].dump(-1, ' ', false, Json::error_handler_t::replace).size();
    if (bytes > kMostOrderBytes) break;
  }
  if (fit == orders.size()) return orders;
  if (warn)
    warn("the checkpoint has no room for " + std::to_string(orders.size() - fit) +
         " orders for later steps: a run that goes on from it doesn't know them");
  orders.erase(orders.begin() + static_cast<std::ptrdiff_t>(fit), orders.end());
  return orders;
}

CheckpointSaver::CheckpointSaver(SaverOptions options, Disk& disk)
    : options_(std::move(options)),
      disk_(disk),
      store_(branch_folder(options_.run_directory, options_.branch), disk) {}

std::vector<std::string> CheckpointSaver::remove_leftovers() {
  return store_.remove_leftovers();
}

void CheckpointSaver::moved_to(int rank, int world_size) {
  // What the rank 0 of before was writing is nobody's now.
  if (rank == 0 && options_.rank != 0) store_.remove_leftovers();
  options_.rank = rank;
  options_.world_size = world_size;
}

Result<Saved> CheckpointSaver::save(const Snapshot& snapshot) {
  const std::string path =
      (branch_folder(options_.run_directory, options_.branch) / folder_name(snapshot.step, snapshot.tag))
          .string();
  if (options_.rank != 0) return Saved{path, 0};

  const RunMoment moment = snapshot.moment ? *snapshot.moment : this->moment();
  Manifest manifest = manifest_of(snapshot, moment);
  // State changes by steps, settings by orders: with neither in between it is the same checkpoint.
  Last next{path, moment.order, moment.orders, snapshot.best, manifest.only_best};
  if (next == last_) return Saved{path, 0};

  const auto tensors = on_host(snapshot.state);
  if (!tensors) return tl::unexpected(tensors.error());
  if (options_.metrics) manifest.metrics = options_.metrics();
  const auto keep = [&](const char* name) {
    return static_cast<std::size_t>(snapshot.settings.integer(name));
  };
  std::error_code none;
  const std::filesystem::path alike =
      std::filesystem::exists(path, none) ? std::filesystem::path(path) : options_.origin;
  const auto stored = store_.save(std::move(manifest), kFileOfRank0, tensors->views,
                                  {keep("ckpt.keep"), keep("ckpt.keep_best")}, alike);
  if (!stored) return tl::unexpected(stored.error());
  for (const auto& note : stored->notes)
    if (options_.warn) options_.warn(note);
  last_ = std::move(next);
  return Saved{path, static_cast<std::int64_t>(stored->bytes)};
}

Manifest CheckpointSaver::manifest_of(const Snapshot& snapshot, const RunMoment& moment) const {
  Manifest manifest;
  manifest.run = options_.run_id;
  manifest.start = options_.start;
  manifest.step = snapshot.step;
  manifest.world_size = options_.world_size;
  manifest.branch = options_.branch;
  manifest.tag = snapshot.tag;
  manifest.best_evaluation = snapshot.best;
  manifest.best =
      snapshot.best && snapshot.best->step == snapshot.step && snapshot.best->branch == options_.branch;
  manifest.journal = moment.order;
  manifest.settings = snapshot.settings.to_json();
  manifest.progress = snapshot.progress;
  manifest.store = moment.store;
  manifest.orders = moment.orders;
  if (!snapshot.only_best) return manifest;
  // One that was saved for itself stays so.
  const auto there = read_manifest(branch_folder(options_.run_directory, options_.branch) /
                                   folder_name(snapshot.step, snapshot.tag));
  manifest.only_best = !there || there->only_best;
  return manifest;
}

RunMoment CheckpointSaver::moment() const {
  RunMoment moment;
  if (options_.last_order) moment.order = options_.last_order();
  if (options_.store) moment.store = options_.store();
  if (options_.orders) moment.orders = within_a_manifest(options_.orders(), options_.warn);
  return moment;
}

Result<FoundCheckpoint> CheckpointSaver::find(const std::string& ref, std::int64_t step) const {
  return find_checkpoint(options_.run_directory, ref,
                         {options_.branch, step, options_.best ? options_.best() : std::nullopt});
}

Result<void> CheckpointSaver::look_for(const std::string& ref, std::int64_t step) const {
  return find(ref, step).map([](const FoundCheckpoint&) {});
}

Result<std::vector<MovedCheckpoint>> CheckpointSaver::tag(const std::string& ref, std::int64_t step,
                                                          const std::string& tag) {
  const auto found = find(ref, step);
  if (!found) return tl::unexpected(found.error());
  std::vector<MovedCheckpoint> moved;
  const auto give = [&](const std::filesystem::path& path, const std::string& name) -> Result<void> {
    auto now = CheckpointStore(path.parent_path(), disk_).retag(path, name);
    if (!now) return tl::unexpected(now.error());
    moved.push_back({path.string(), now->string()});
    if (last_.path == path) last_ = {};
    return {};
  };
  if (auto given = give(found->path, tag); !given) return tl::unexpected(given.error());
  for (const auto& branch : list_branches(options_.run_directory))
    for (const auto& path : list_checkpoints(branch)) {
      const auto name = parse_folder_name(path.filename().string());
      if (path == moved.front().now || name->tag != tag || name->replaced) continue;
      if (auto taken = give(path, ""); !taken) return tl::unexpected(taken.error());
    }
  return moved;
}

Result<std::string> CheckpointSaver::remove(const std::string& tag) {
  const auto found = find(tag, 0);
  if (!found) return tl::unexpected(found.error());
  if (found->manifest.tag != tag)
    return fail(ErrorKind::usage, "'" + tag + "' is no tag; ckpt.list() has them");
  if (found->path == newest_checkpoint(options_.run_directory))
    return fail(ErrorKind::refused, "'" + tag +
                                        "' is the run's newest checkpoint, which a resume goes on "
                                        "from; ckpt.save() makes a newer one first");
  if (auto removed = CheckpointStore(found->path.parent_path(), disk_).remove(found->path); !removed)
    return tl::unexpected(removed.error());
  if (last_.path == found->path) last_ = {};
  return found->path.string();
}

Result<Json> CheckpointSaver::load(const std::string& checkpoint, const StateTable& into) {
  const auto wanted = specs_of(into);
  if (!wanted) return tl::unexpected(wanted.error());
  const auto loaded = LoadedCheckpoint::read(checkpoint);
  if (!loaded) return tl::unexpected(loaded.error());
  if (auto same = loaded->matches(*wanted); !same) return tl::unexpected(same.error());
  // Only now, with everything verified, is the model's memory touched.
  for (const auto& entry : into.entries())
    if (const auto bytes = loaded->find(entry.name)) entry.take(bytes->data());
  return loaded->manifest().progress;
}

}  // namespace footplate
