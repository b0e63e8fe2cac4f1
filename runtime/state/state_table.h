#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/comm/communicator.h"

namespace footplate {

/// Which ranks hold a tensor.
enum class Placement {
  replicated,  ///< the same on every rank
  sharded,     ///< each rank has its part
  local,       ///< each rank has its own
};

/// Hashes that a device computes beside the host.
class PendingHashes {
 public:
  virtual ~PendingHashes() = default;
  /// Waits for them. Throws where the device fails.
  virtual std::vector<std::uint64_t> take() = 0;
};

/// Memory that the host can't reach by itself: a device's. Training thread; throws where the device fails.
class StateMemory {
 public:
  virtual ~StateMemory() = default;
  // Both wait for what was enqueued before them.
  virtual void copy_out(void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_in(void* to, const void* from, std::size_t bytes) = 0;

  /// What begin_hashes() takes at most as one stretch; 0: it can't, and who wants a hash copies.
  virtual std::size_t most_hashed() const { return 0; }
  /// Enqueues a hash of each stretch of this memory, as it is behind what was enqueued before.
  virtual std::unique_ptr<PendingHashes> begin_hashes(
      std::span<const std::span<const std::byte>> /*stretches*/) {
    return nullptr;
  }
};

/// Which elements of a tensor: those from `first` on, in row-major order.
struct ShardOf {
  std::vector<std::int64_t> shape;  ///< of the whole tensor
  std::int64_t first = 0;
};

/// One persistent tensor, or of a sharded one some elements: contiguous memory that somebody else owns and
/// that stays where it is.
struct StateEntry {
  std::string name;  ///< "model/blocks.0.qkv.weight", "optim/exp_avg/…", "optim/step"
  DataType type = DataType::float32;
  std::vector<std::int64_t> shape;  ///< empty: one element; of a shard: how many it has
  Placement placement = Placement::replicated;
  void* data = nullptr;  ///< in `memory`; reach it by the functions below
  std::size_t bytes = 0;
  StateMemory* memory = nullptr;  ///< null: the host's
  /// Of a sharded entry. A rank may have several of one tensor; one of no elements where it has none.
  std::optional<ShardOf> shard = {};
  bool forward_writes = false;  ///< others change only when the optimizer updates, or between two steps

  /// What it holds: the memory itself where that is the host's, else a copy in `room`, made larger as needed.
  std::span<const std::byte> on_host(std::vector<std::byte>& room) const;
  /// Fills `to`, which is the host's memory, from byte `from` of it on.
  void copy_to(std::span<std::byte> to, std::size_t from = 0) const;
  /// XXH3 over what it holds.
  std::uint64_t hash(std::vector<std::byte>& room) const;
  /// Takes its bytes from `at` on from the host's memory.
  void take(std::span<const std::byte> from, std::size_t at = 0) const;
};

/// Every persistent tensor of a rank, in an order that is the same on all ranks. Checkpoints, hashes
/// and, later, levelling after a recovery read it. Reading the memory is for the training thread, at
/// a step boundary.
class StateTable {
 public:
  /// Programming error if the name is there already and this is no other shard of that tensor, or the bytes
  /// don't fit shape and type.
  void add(StateEntry entry);

  /// Those whose names begin so. The memory is their owner's.
  void remove(std::string_view prefix);

  const std::vector<StateEntry>& entries() const { return entries_; }
  /// Of several shards the first.
  const StateEntry* find(std::string_view name) const;
  /// Whether ranks have state that others haven't. The same on all ranks.
  bool is_sharded() const;

  /// XXH3 over names and contents of all replicated entries: equal on all ranks that are in step.
  std::uint64_t hash() const;
  /// In 16 hexadecimal digits; nothing where the state can't be read any more: its device has failed.
  std::optional<std::string> hash_if_readable() const;

 private:
  std::vector<StateEntry> entries_;
};

}  // namespace footplate
