#include "runtime/checkpoint/saver.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/resume.h"
#include "runtime/comm/agree.h"

namespace footplate {
namespace {

constexpr std::size_t kMostOrderBytes = kMaxManifestBytes / 4;

/// Where a rank has less than this to write, it leaves it to others.
constexpr std::size_t kWorthAPart = std::size_t{64} << 20;

/// What `block`, which is of the whole tensor from byte `at` on, has of this entry.
void take_of(const StateEntry& entry, std::size_t at, std::span<const std::byte> block) {
  const std::size_t first =
      entry.shard ? static_cast<std::size_t>(entry.shard->first) * size_of(entry.type) : 0;
  const std::size_t begin = std::max(first, at), end = std::min(first + entry.bytes, at + block.size());
  if (begin < end) entry.take(block.subspan(begin - at, end - begin), begin - first);
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
      store_(branch_folder(options_.run_directory, options_.branch), disk, options_.retries, options_.log),
      copy_(options_.memory_left) {}

std::vector<std::string> CheckpointSaver::remove_leftovers() {
  return store_.remove_leftovers();
}

CheckpointSaver::~CheckpointSaver() {
  give_up();
}

void CheckpointSaver::moved_to(int rank, int world_size) {
  // What the rank 0 of before was writing is nobody's now. Not here: others may still be writing.
  if (rank == 0 && options_.rank != 0) untidy_ = true;
  options_.rank = rank;
  options_.world_size = world_size;
  alone_ = false;  // a rank that joins knows nothing of it
}

void CheckpointSaver::expect_parts() {
  auto none = SteadyClock::time_point::max();
  // A network file system may show a file late.
  parts_due_.compare_exchange_strong(none, SteadyClock::now() + options_.note_takes * 3 / 2);
}

bool CheckpointSaver::give_up() {
  if (!has_parts_) return false;
  gives_up_ = true;
  writer_.wait();
  gives_up_ = false;
  has_parts_ = false;
  if (gave_up_) untidy_ = true;
  return std::exchange(gave_up_, false);
}

void CheckpointSaver::tidy() {
  if (std::exchange(untidy_, false)) store_.remove_leftovers();
}

int CheckpointSaver::parts(const StateTable& state, const Settings& settings) const {
  if (state.is_sharded()) return options_.world_size;
  if (alone_ || options_.ranks == nullptr) return 1;
  const std::int64_t given = settings.integer("ckpt.parts");
  const auto worth = static_cast<std::int64_t>(bytes_of(state) / kWorthAPart);
  return static_cast<int>(std::clamp<std::int64_t>(given > 0 ? given : worth, 1, options_.world_size));
}

Result<Saved> CheckpointSaver::save(const Snapshot& snapshot) {
  finish();
  has_parts_ = false;
  if (snapshot.parts > 1)
    return save_parts(snapshot, {}).map([](const BegunSave& begun) { return *begun.done; });
  auto planned = options_.rank == 0 ? plan(snapshot) : std::nullopt;
  if (!planned) return Saved{path_of(snapshot), 0};
  const auto part = StatePart::of(snapshot.state, 0, 1);
  const auto tensors = part.and_then([](const StatePart& whole) { return whole.on_host(); });
  if (!tensors) return tl::unexpected(tensors.error());
  return write(*std::move(planned), tensors->views);
}

Result<BegunSave> CheckpointSaver::begin(const Snapshot& snapshot, Done done) {
  finish();
  has_parts_ = false;
  if (snapshot.parts > 1) return save_parts(snapshot, done);
  const std::string path = path_of(snapshot);
  auto planned = options_.rank == 0 ? plan(snapshot) : std::nullopt;
  if (!planned) return BegunSave{path, Saved{path, 0}};
  const auto part = StatePart::of(snapshot.state, 0, 1);
  auto tensors = part.and_then([&](const StatePart& whole) { return copy(whole); });
  if (!tensors) {
    tell_waiting(snapshot.step, tensors.error().message);
    return save(snapshot).map([&](const Saved& saved) { return BegunSave{path, saved}; });
  }
  writer_.start([this, planned = *std::move(planned), tensors = *std::move(tensors), done = std::move(done)] {
    done(write(planned, tensors));
  });
  return BegunSave{path, {}};
}

void CheckpointSaver::tell_waiting(std::int64_t step, const std::string& why) const {
  if (options_.warn)
    options_.warn("training waits for the checkpoint of step " + std::to_string(step) + ": " + why);
}

void CheckpointSaver::make_room(const StateTable& state, const Settings& settings) {
  if (writer_.is_busy()) return;
  const auto part = StatePart::of(state, options_.rank, parts(state, settings));
  const std::size_t bytes = part ? part->bytes() : 0;
  if (copy_.bytes().size() >= bytes) return;
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

Result<std::vector<TensorView>> CheckpointSaver::copy(const StatePart& part) {
  if (auto room = copy_.reserve(part.bytes()); !room) return tl::unexpected(room.error());
  return part.copy_into(copy_.bytes());
}

Wrote CheckpointSaver::wrote(std::span<const TensorView> tensors) const {
  std::size_t bytes = 0;
  for (const TensorView& tensor : tensors) bytes += tensor.bytes.size();
  return [this, bytes, written = std::size_t{0}](std::size_t more) mutable {
    written = more == 0 ? 0 : written + more;  // a try that failed begins anew
    if (options_.wrote && bytes > 0)
      options_.wrote(std::min(1.0, static_cast<double>(written) / static_cast<double>(bytes)));
    return !gives_up_.load(std::memory_order_relaxed);
  };
}

Result<Saved> CheckpointSaver::write(Planned planned, std::span<const TensorView> tensors) {
  if (options_.before_commit) options_.before_commit();
  const auto stored =
      store_.save(planned.manifest, file_of_rank(0), tensors, planned.keep, planned.alike, wrote(tensors));
  return stored.map([&](const Stored& one) { return saved(std::move(planned), one); });
}

Saved CheckpointSaver::saved(Planned planned, const Stored& stored) {
  for (const auto& note : stored.notes)
    if (options_.warn) options_.warn(note);
  last_ = std::move(planned.last);
  return Saved{last_.path, static_cast<std::int64_t>(stored.bytes)};
}

Result<BegunSave> CheckpointSaver::save_parts(const Snapshot& snapshot, const Done& done) {
  auto planned = options_.rank == 0 ? plan(snapshot) : std::nullopt;
  Result<SharedSave::Plan> mine;
  if (planned)
    mine = store_.begin(snapshot.step, snapshot.tag).map([&](const std::filesystem::path& temporary) {
      return SharedSave::Plan{temporary, planned->alike, snapshot.step};
    });
  const auto save = SharedSave::begin(*options_.ranks, mine);
  const std::string path = path_of(snapshot);
  if (save && save->plan().temporary.empty()) return BegunSave{path, Saved{path, 0}};
  auto begun = save.and_then([&](const SharedSave& one) {
    return save_parts(snapshot, Shared{one, std::move(planned)}, done);
  });
  if (begun || options_.rank != 0 || !mine) return begun;
  if (begun.error().kind == ErrorKind::lost)
    untidy_ = true;  // others may still be writing
  else
    store_.abandon(mine->temporary);
  return begun;
}

Result<BegunSave> CheckpointSaver::save_parts(const Snapshot& snapshot, const Shared& shared,
                                              const Done& done) {
  const auto seen = shared.save.all_see_folder();
  if (!seen) return tl::unexpected(seen.error());
  if (!*seen) return save_alone(snapshot, shared, done);
  const auto part = StatePart::of(snapshot.state, options_.rank, snapshot.parts);
  if (!part) return tl::unexpected(part.error());  // on all ranks
  const std::string path = path_of(snapshot);
  if (done) {
    const auto begun = begin_part(*part, shared, done);
    if (begun) return BegunSave{path, {}};
    if (begun.error().kind == ErrorKind::lost) return tl::unexpected(begun.error());
    if (options_.rank == 0) tell_waiting(snapshot.step, begun.error().message);
  }
  return save_part(*part, shared).map([&](std::int64_t bytes) {
    return BegunSave{path, Saved{path, bytes}};
  });
}

Result<BegunSave> CheckpointSaver::save_alone(const Snapshot& snapshot, const Shared& shared,
                                              const Done& done) {
  if (snapshot.state.is_sharded())
    return fail(ErrorKind::failed, "not every rank sees " + store_.folder().string() +
                                       ", and each has to write its part of the optimizer's state there "
                                       "(optim.shard); put the run's folder where all hosts see it");
  alone_ = true;
  if (options_.rank == 0) {
    store_.abandon(shared.save.plan().temporary);
    if (options_.warn)
      options_.warn("not every rank sees " + store_.folder().string() +
                    ": rank 0 writes checkpoints alone; put the run's folder where all hosts see it");
  }
  Snapshot whole = snapshot;
  whole.parts = 1;
  if (done) return begin(whole, done);
  return save(whole).map([](const Saved& saved) { return BegunSave{saved.path, saved}; });
}

Result<void> CheckpointSaver::begin_part(const StatePart& part, const Shared& shared, const Done& done) {
  const auto tensors = copy(part);
  if (auto agreed = agree(*options_.ranks, outcome_of(tensors)); !agreed) return agreed;
  has_parts_ = true;
  writes_part_ = true;
  parts_due_ = SteadyClock::time_point::max();
  writer_.start([this, shared, tensors = *tensors, done] {
    SharedSave save = shared.save;
    save.write(store_, tensors, wrote(tensors));
    writes_part_ = false;
    writes_part_.notify_all();
    if (!shared.planned) {
      if (!gives_up_) save.leave_note(gives_up_, options_.note_takes);  // else rank 0 gives up, too
      return;
    }
    const auto files = save.collect_notes([this] {
      if (gives_up_) return SharedSave::Wait::no_more;
      return SteadyClock::now() < parts_due_.load() ? SharedSave::Wait::on : SharedSave::Wait::in_vain;
    });
    gave_up_ = !files;
    if (files) done(commit(shared, *files));
  });
  return {};
}

Result<std::int64_t> CheckpointSaver::save_part(const StatePart& part, const Shared& shared) {
  const auto tensors = part.on_host();
  if (auto agreed = agree(*options_.ranks, outcome_of(tensors)); !agreed)
    return tl::unexpected(agreed.error());
  SharedSave save = shared.save;
  save.write(store_, tensors->views, wrote(tensors->views));
  const auto files = save.gather();
  if (!files) return tl::unexpected(files.error());
  if (!shared.planned) return 0;
  return commit(shared, files).map([](const Saved& saved) { return saved.bytes; });
}

Result<Saved> CheckpointSaver::commit(const Shared& shared, const Result<std::vector<ManifestFile>>& files) {
  const auto& temporary = shared.save.plan().temporary;
  if (options_.before_commit) options_.before_commit();
  const auto stored = files.and_then([&](const std::vector<ManifestFile>& all) {
    Manifest manifest = shared.planned->manifest;
    manifest.files = all;
    return store_.commit(temporary, std::move(manifest), shared.planned->keep,
                         [this](std::size_t) { return !gives_up_.load(std::memory_order_relaxed); });
  });
  if (!stored) store_.abandon(temporary);
  return stored.map([&](const Stored& one) { return saved(*shared.planned, one); });
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
  finish();
  const auto wanted = specs_of(into);
  if (!wanted) return tl::unexpected(wanted.error());
  const auto saved = CheckpointReader::open(checkpoint);
  if (!saved) return tl::unexpected(saved.error());
  // Only now, with the same names, types and shapes, is the model's memory touched.
  if (auto same = saved->matches(*wanted); !same) return tl::unexpected(same.error());
  std::multimap<std::string_view, const StateEntry*> entries;
  for (const StateEntry& entry : into.entries()) entries.emplace(entry.name, &entry);
  const auto read = saved->read([&](const std::string& tensor, std::uint64_t at, auto block) {
    for (auto [entry, end] = entries.equal_range(tensor); entry != end; ++entry)
      take_of(*entry->second, static_cast<std::size_t>(at), block);
  });
  if (last_.path != checkpoint) last_ = {};  // what was saved since isn't what training comes to again
  return read.map([&] { return saved->manifest().progress; });
}

}  // namespace footplate
