#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "runtime/base/clock.h"

namespace footplate {

/// The earliest of as many moments as there are ranks, kept while they change: a tree of the earlier ones of
/// every two.
class Earliest {
 public:
  using Clock = SteadyClock;
  explicit Earliest(std::size_t ranks)
      : leaves_(std::bit_ceil(ranks)), nodes_(2 * leaves_, Clock::time_point::max()) {}

  /// Stops where an earlier one hides the change.
  void set(std::size_t rank, Clock::time_point time) {
    std::size_t node = leaves_ + rank;
    nodes_[node] = time;
    while (node > 1) {
      node /= 2;
      const Clock::time_point earlier = std::min(nodes_[2 * node], nodes_[2 * node + 1]);
      if (nodes_[node] == earlier) return;
      nodes_[node] = earlier;
    }
  }
  void unset(std::size_t rank) { set(rank, Clock::time_point::max()); }
  /// Clock::time_point::max(): none is set.
  Clock::time_point get() const { return nodes_[1]; }

 private:
  std::size_t leaves_;
  std::vector<Clock::time_point> nodes_;  ///< 1 is the root, 2 n and 2 n + 1 are below n
};

}  // namespace footplate
