#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
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

  /// Reports for which somebody's is still missing; the oldest is forgotten beyond this.
  static constexpr std::size_t kMostReports = 16;

  int world_size_;
  /// By step, and whether the tensors are told: of a step there may be one of all the state and one of a
  /// slice.
  std::map<std::pair<std::int64_t, bool>, OfRanks> reports_;
};

}  // namespace footplate
