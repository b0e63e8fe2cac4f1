#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace footplate {

/// Rank 0: compares the hashes that the ranks report of their state.
class StateHashes {
 public:
  explicit StateHashes(int world_size) : world_size_(world_size) {}

  struct Mismatch {
    std::int64_t step = 0;
    std::vector<int> odd;  ///< the ranks outside the largest group; with two ranks both are named
    std::string text;
  };

  /// A mismatch once all ranks have reported `step` and differ.
  std::optional<Mismatch> add(int rank, std::int64_t step, std::uint64_t hash);

 private:
  /// Steps for which somebody's hash is still missing; the oldest is forgotten beyond this.
  static constexpr std::size_t kMostSteps = 16;

  int world_size_;
  std::map<std::int64_t, std::map<int, std::uint64_t>> steps_;
};

}  // namespace footplate
