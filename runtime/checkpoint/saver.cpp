#include "runtime/checkpoint/saver.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/checkpoint_reader.h"
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

std::size_t bytes_of(const StateTable& state) {
  std::size_t bytes = 0;
  for (const auto& entry : state.entries()) bytes += entry.bytes;
  return bytes;
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
      store_(branch_folder(options_.run_directory, options_.branch), disk),
      copy_(options_.memory_left) {}

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
  finish();
  auto planned = options_.rank == 0 ? plan(snapshot) : std::nullopt;
  if (!planned) return Saved{path_of(snapshot), 0};
  const auto tensors = on_host(snapshot.state);
  if (!tensors) return tl::unexpected(tensors.error());
  return write(*std::move(planned), tensors->views);
}

Result<BegunSave> CheckpointSaver::begin(const Snapshot& snapshot,
                                         std::function<void(const Result<Saved>&)> done) {
  finish();
  const std::string path = path_of(snapshot);
  auto planned = options_.rank == 0 ? plan(snapshot) : std::nullopt;
  if (!planned) return BegunSave{path, Saved{path, 0}};
  auto tensors = copy(snapshot.state);
  if (!tensors) {
    if (options_.warn)
      options_.warn("training waits for the checkpoint of step " + std::to_string(snapshot.step) + ": " +
                    tensors.error().message);
    return save(snapshot).map([&](const Saved& saved) { return BegunSave{path, saved}; });
  }
  writer_.start([this, planned = *std::move(planned), tensors = *std::move(tensors), done = std::move(done)] {
    done(write(planned, tensors));
  });
  return BegunSave{path, {}};
}

void CheckpointSaver::make_room(const StateTable& state) {
  const std::size_t bytes = bytes_of(state);
  if (options_.rank != 0 || writer_.is_busy() || copy_.bytes().size() >= bytes) return;
  // What there is no memory for now, the first save tries again, and says so.
  writer_.start([this, bytes] { static_cast<void>(copy_.reserve(bytes)); });
}

void CheckpointSaver::give_room_back() {
  finish();
  copy_.release();
}

std::string CheckpointSaver::newest() const {
  return newest_checkpoint(options_.run_directory).string();
}

std::string CheckpointSaver::path_of(const Snapshot& snapshot) const {
  return (branch_folder(options_.run_directory, options_.branch) / folder_name(snapshot.step, snapshot.tag))
      .string();
}

std::optional<CheckpointSaver::Planned> CheckpointSaver::plan(const Snapshot& snapshot) {
  const RunMoment moment = snapshot.moment ? *snapshot.moment : this->moment();
  const std::string path = path_of(snapshot);
  Planned planned;
  planned.manifest = manifest_of(snapshot, moment);
  // State changes by steps, settings by orders: with neither in between it is the same checkpoint.
  planned.last = {path, moment.order, moment.orders, snapshot.best, planned.manifest.only_best};
  if (planned.last == last_) return std::nullopt;
  if (options_.metrics) planned.manifest.metrics = options_.metrics();
  const auto keep = [&](const char* name) {
    return static_cast<std::size_t>(snapshot.settings.integer(name));
  };
  planned.keep = {keep("ckpt.keep"), keep("ckpt.keep_best")};
  std::error_code none;
  planned.alike = std::filesystem::exists(path, none) ? std::filesystem::path(path) : options_.origin;
  return planned;
}

Result<std::vector<TensorView>> CheckpointSaver::copy(const StateTable& state) {
  auto specs = specs_of(state);
  if (!specs) return tl::unexpected(specs.error());
  const std::size_t bytes = bytes_of(state);
  if (auto room = copy_.reserve(bytes); !room) return tl::unexpected(room.error());
  std::vector<TensorView> views;
  auto left = copy_.bytes();
  for (std::size_t i = 0; i < specs->size(); ++i) {
    const StateEntry& entry = state.entries()[i];
    const auto taken = left.first(entry.bytes);
    left = left.subspan(entry.bytes);
    entry.copy_to(taken);
    TensorSpec& spec = (*specs)[i];
    views.push_back({std::move(spec.name), spec.type, std::move(spec.shape), taken});
  }
  return views;
}

Result<Saved> CheckpointSaver::write(Planned planned, std::span<const TensorView> tensors) {
  std::size_t bytes = 0;
  std::size_t written = 0;
  for (const TensorView& tensor : tensors) bytes += tensor.bytes.size();
  const auto wrote = [&](std::size_t more) {
    written += more;
    if (options_.wrote && bytes > 0)
      options_.wrote(std::min(1.0, static_cast<double>(written) / static_cast<double>(bytes)));
  };
  const auto stored =
      store_.save(std::move(planned.manifest), kFileOfRank0, tensors, planned.keep, planned.alike, wrote);
  if (!stored) return tl::unexpected(stored.error());
  for (const auto& note : stored->notes)
    if (options_.warn) options_.warn(note);
  const std::string path = planned.last.path;
  last_ = std::move(planned.last);
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
  finish();
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
  finish();
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
  const auto saved = CheckpointReader::open(checkpoint);
  if (!saved) return tl::unexpected(saved.error());
  // Only now, with the same names, types and shapes, is the model's memory touched.
  if (auto same = saved->matches(*wanted); !same) return tl::unexpected(same.error());
  std::map<std::string_view, const StateEntry*> entries;
  for (const StateEntry& entry : into.entries()) entries[entry.name] = &entry;
  const auto read = saved->read([&](const std::string& tensor, std::uint64_t at, auto block) {
    entries.at(tensor)->take(block, static_cast<std::size_t>(at));
  });
  return read.map([&] { return saved->manifest().progress; });
}

}  // namespace footplate
