#include "runtime/state/state_sweep.h"

#include <xxhash.h>

#include <algorithm>
#include <system_error>

namespace footplate {
namespace {

/// What one thread takes at a time: some microseconds.
constexpr std::size_t kPieceBytes = std::size_t{64} << 10U;

/// Less isn't worth a step of its own.
constexpr std::size_t kLeastSlice = std::size_t{256} << 10U;

constexpr std::size_t kAlign = 64;  ///< slices begin on a cache line, seen from the tensor before

constexpr std::size_t kWord = 4;

/// Each tensor begins at a word, so that no piece of a later one begins within.
std::size_t in_words(std::size_t bytes) {
  return (bytes + kWord - 1) / kWord * kWord;
}

std::size_t replicated_bytes(const StateTable& state) {
  std::size_t bytes = 0;
  for (const StateEntry& entry : state.entries())
    if (entry.placement == Placement::replicated) bytes += in_words(entry.bytes);
  return bytes;
}

/// In words of four bytes.
bool is_hashed_by_device(const StateEntry& entry) {
  return entry.memory != nullptr && entry.memory->most_hashed() > 0 && entry.bytes % kWord == 0;
}

}  // namespace

StateSweep::~StateSweep() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void StateSweep::know_equal(std::int64_t step) {
  since_ = equal_ = step;
  agreed_.reset();
}

void StateSweep::begin(std::int64_t step, std::int64_t period) {
  if (period_ < 0) know_equal(step);
  if (period != period_) {
    if (period_ > 0) equal_ = last_equal(step);
    since_ = step;
    period_ = period;
  }
  step_ = step;
  pieces_.clear();
  open_.clear();
  on_device_.clear();
  pending_.reset();
  next_ = 0;
  if (period > 0) list_pieces(step % period, period);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const StateEntry& entry = *pieces_[i].entry;
    if (is_hashed_by_device(entry))
      on_device_.push_back(i);
    else if (entry.memory != nullptr || entry.forward_writes)
      hash(pieces_[i]);
    else
      open_.push_back(i);
  }
  if (!on_device_.empty()) begin_on_device();
  if (open_.size() > 1) call_thread();
}

void StateSweep::begin_on_device() {
  std::vector<std::span<const std::byte>> stretches;
  for (const std::size_t i : on_device_)
    stretches.emplace_back(static_cast<const std::byte*>(pieces_[i].entry->data) + pieces_[i].from,
                           pieces_[i].bytes);
  pending_ = pieces_[on_device_.front()].entry->memory->begin_hashes(stretches);
}

void StateSweep::take_from_device() {
  const std::vector<std::uint64_t> hashes = pending_->take();
  pending_.reset();
  const auto seed = static_cast<std::uint64_t>(step_);
  for (std::size_t i = 0; i < on_device_.size(); ++i)
    pieces_[on_device_[i]].hash = XXH3_64bits_withSeed(&hashes.at(i), sizeof(hashes.at(i)), seed);
}

void StateSweep::list_pieces(std::int64_t slice, std::int64_t period) {
  const std::size_t all = replicated_bytes(state_);
  const std::size_t slices =
      std::min(static_cast<std::size_t>(period), (all + kLeastSlice - 1) / kLeastSlice);
  const auto now = static_cast<std::size_t>(slice);
  if (now >= slices) return;
  const std::size_t each = ((all + slices - 1) / slices + kAlign - 1) / kAlign * kAlign;
  const std::size_t first = now * each, end = first + each;
  std::size_t here = 0;
  for (const StateEntry& entry : state_.entries()) {
    if (entry.placement != Placement::replicated) continue;
    const std::size_t from = std::clamp(first, here, here + entry.bytes);
    const std::size_t to = std::clamp(end, here, here + entry.bytes);
    add(entry, from - here, to - here);
    here += in_words(entry.bytes);
  }
}

void StateSweep::add(const StateEntry& entry, std::size_t from, std::size_t end) {
  const std::size_t at_once = is_hashed_by_device(entry) ? entry.memory->most_hashed() : kPieceBytes;
  while (from < end) {
    const std::size_t bytes = std::min(at_once, end - from);
    pieces_.push_back({&entry, from, bytes});
    from += bytes;
  }
}

/// Another one for each step: what collides in the few bits that are compared doesn't the next time.
void StateSweep::hash(Piece& piece) const {
  const auto seed = static_cast<std::uint64_t>(step_);
  if (piece.entry->memory == nullptr) {
    piece.hash = XXH3_64bits_withSeed(static_cast<const std::byte*>(piece.entry->data) + piece.from,
                                      piece.bytes, seed);
    return;
  }
  std::vector<std::byte> room(piece.bytes);
  piece.entry->copy_to(room, piece.from);
  piece.hash = XXH3_64bits_withSeed(room.data(), room.size(), seed);
}

/// False: all have been taken.
bool StateSweep::hash_next() {
  const std::size_t mine = next_.fetch_add(1);
  if (mine >= open_.size()) return false;
  hash(pieces_[open_[mine]]);
  return true;
}

void StateSweep::call_thread() {
  if (!thread_.joinable() && !refused_) {
    try {
      thread_ = Thread("state check", [this] { work(); });
    } catch (const std::system_error&) {
      refused_ = true;
    }
  }
  const MutexLock lock(mutex_);
  called_ = true;
  changed_.notify_all();
}

void StateSweep::work() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return called_ || ends_; });
    if (ends_) return;
    called_ = false;
    works_ = true;
    lock.unlock();
    while (hash_next()) {
    }
    lock.lock();
    works_ = false;
    changed_.notify_all();
  }
}

std::optional<std::uint64_t> StateSweep::finish() {
  while (hash_next()) {
  }
  {
    MutexLock lock(mutex_);
    called_ = false;  // a thread that hasn't come yet isn't waited for
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return !works_; });
  }
  if (pending_ != nullptr) take_from_device();
  if (pieces_.empty()) return std::nullopt;
  hash_ = 0;
  for (const Piece& piece : pieces_) hash_ = XXH3_64bits_withSeed(&piece.hash, sizeof(piece.hash), hash_);
  return hash_;
}

/// Of any slice, before it is hashed after `step`.
std::int64_t StateSweep::last_equal(std::int64_t step) const {
  return std::max(equal_, step - since_ >= period_ ? step - period_ : equal_);
}

StateHash StateSweep::report() {
  agreed_ = agreed_.value_or(last_equal(step_));
  StateHash told{.step = step_, .hash = hash_, .agreed = agreed_};
  const StateEntry* entry = nullptr;
  for (const Piece& piece : pieces_) {
    if (piece.entry != entry) told.tensors.push_back({piece.entry->name, 0});
    entry = piece.entry;
    std::uint64_t& hash = told.tensors.back().hash;
    hash = XXH3_64bits_withSeed(&piece.hash, sizeof(piece.hash), hash);
  }
  return told;
}

}  // namespace footplate
