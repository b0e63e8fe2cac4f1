#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "protocol/mutex.h"
#include "runtime/base/condition.h"
#include "runtime/base/thread.h"
#include "runtime/state/state_table.h"
#include "runtime/watch/state_hash.h"

namespace footplate {

/// Hashes the replicated state slice by slice, one slice a step, so that a period of steps covers all of it.
/// A second thread does it while the step computes gradients, when nobody writes the state; what that thread
/// hasn't begun by then, finish() hashes itself. Training thread.
class StateSweep {
 public:
  /// `state` outlives this object.
  explicit StateSweep(const StateTable& state) : state_(state) {}
  StateSweep(const StateSweep&) = delete;
  StateSweep& operator=(const StateSweep&) = delete;
  ~StateSweep();

  /// Begins with the slice that is due after `step` steps, where a period of so many covers the state; a
  /// small state has fewer slices than that. What forward writes (StateEntry::forward_writes) is hashed here
  /// and now; what a device has, by the device, behind what is enqueued so far, or here where it can't.
  void begin(std::int64_t step, std::int64_t period);

  /// Nobody reads the state any more once this returns. The hash is the same on all ranks that are in step;
  /// nothing where no slice was due.
  std::optional<std::uint64_t> finish();

  /// All ranks have the same state after `step` steps, as they have at the first begin().
  void know_equal(std::int64_t step);

  /// What finish() returned last, which other ranks have otherwise, tensor by tensor. Until know_equal() the
  /// first such report tells when all agreed.
  StateHash report();

 private:
  /// Bytes of one tensor.
  struct Piece {
    const StateEntry* entry = nullptr;
    std::size_t from = 0, bytes = 0;
    std::uint64_t hash = 0;
  };

  std::int64_t last_equal(std::int64_t step) const;
  void list_pieces(std::int64_t slice, std::int64_t period);
  void add(const StateEntry& entry, std::size_t from, std::size_t end);
  void hash(Piece& piece) const;
  void begin_on_device();
  void take_from_device();
  bool hash_next();
  void call_thread();
  void work();  ///< its own thread

  const StateTable& state_;
  std::int64_t step_ = -1;
  std::int64_t period_ = -1;
  std::int64_t since_ = 0;              ///< when that period began
  std::int64_t equal_ = 0;              ///< at this step or later each part had been equal by then
  std::optional<std::int64_t> agreed_;  ///< as the first report told
  // Written by begin() while the thread is idle; then each piece by who has taken it, until finish().
  std::vector<Piece> pieces_;
  std::vector<std::size_t> open_;       ///< pieces for whoever comes first
  std::atomic<std::size_t> next_ = 0;   ///< of those
  std::vector<std::size_t> on_device_;  ///< pieces that the device hashes
  std::unique_ptr<PendingHashes> pending_;
  std::uint64_t hash_ = 0;

  Mutex mutex_;
  Condition changed_;
  bool called_ GUARDED_BY(mutex_) = false;  ///< the thread is to look for pieces
  bool works_ GUARDED_BY(mutex_) = false;   ///< it does
  bool ends_ GUARDED_BY(mutex_) = false;
  bool refused_ = false;  ///< the system has no thread for it
  Thread thread_;
};

}  // namespace footplate
