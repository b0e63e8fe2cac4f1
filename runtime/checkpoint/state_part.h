#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "protocol/result.h"
#include "runtime/checkpoint/slices.h"
#include "runtime/checkpoint/tensor.h"
#include "runtime/state/state_table.h"

namespace footplate {

std::size_t bytes_of(const StateTable& state);

/// A state table's entries as whole tensors. Error (failed): one that is each rank's own.
Result<std::vector<TensorSpec>> specs_of(const StateTable& state);

/// Tensors, with copies of those that are a device's.
struct HostTensors {
  std::vector<TensorView> views;
  std::vector<std::vector<std::byte>> copies;  ///< what some of the views are of
};

/// What one of several ranks writes of a state: tensors, slices of large ones (slices.h), and its shards.
/// Refers to the state table. Training thread.
class StatePart {
 public:
  /// Part `part` of `parts` of what all ranks have, of a part beyond the last one nothing; and all shards
  /// that this rank has. Error: as of specs_of().
  static Result<StatePart> of(const StateTable& state, int part, int parts);

  std::size_t bytes() const;
  /// Errors (failed): the device's.
  Result<HostTensors> on_host() const;
  /// Views of a copy in `room`, of at least bytes(). Errors (failed): the device's.
  Result<std::vector<TensorView>> copy_into(std::span<std::byte> room) const;

 private:
  void add_slice(const StateEntry& entry, const TensorSpec& whole, const TensorSlice& slice);
  void add_shard(const StateEntry& entry, const TensorSpec& whole);
  struct Piece {
    const StateEntry* entry = nullptr;
    std::size_t first = 0, bytes = 0;  ///< of the entry
    TensorView tensor;                 ///< without its bytes
  };
  std::vector<Piece> pieces_;
};

}  // namespace footplate
