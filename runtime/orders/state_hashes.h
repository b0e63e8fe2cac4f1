#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/watch/state_hash.h"

namespace footplate {

/// Rank 0: compares what the ranks report of their state.
class StateHashes {
 public:
  explicit StateHashes(int world_size) : world_size_(world_size) {}

  struct Mismatch {
    std::int64_t step = 0;
    std::vector<int> odd;              ///< the ranks outside the largest group; without a majority all
    std::vector<std::string> tensors;  ///< in which they differ, as far as the ranks have told
    std::string text;
  };

  /// A mismatch once all ranks have reported that step and differ.
  std::optional<Mismatch> add(int rank, StateHash state);

 private:
  using OfRanks = std::map<int, StateHash>;

  static Mismatch mismatch_of(const OfRanks& reports, int reference, bool majority);

  /// Steps for which somebody's hash is still missing; the oldest is forgotten beyond this.
  static constexpr std::size_t kMostSteps = 16;

  int world_size_;
  std::map<std::int64_t, OfRanks> steps_;
};

}  // namespace footplate
