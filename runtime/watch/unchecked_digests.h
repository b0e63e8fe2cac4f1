#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "runtime/watch/messages.h"

namespace footplate {

/// Rank 0: what the ranks say they have launched, until rank 0 has come so far itself. The lowest number
/// comes first, so nobody looks at those that still wait.
class UncheckedDigests {
 public:
  struct One {
    int rank = 0;
    message::Launched launched;
  };
  explicit UncheckedDigests(int world_size) : waits_(static_cast<std::size_t>(world_size)) {}

  /// One of this rank that waits already stays, and this one is dropped.
  void add(int rank, const message::Launched& launched);
  /// Takes those up to this number, in the order of the ranks.
  std::vector<One> take_up_to(std::uint64_t sequence);

 private:
  struct Later {
    bool operator()(const One& a, const One& b) const { return a.launched.sequence > b.launched.sequence; }
  };
  std::vector<bool> waits_;  ///< by rank
  std::priority_queue<One, std::vector<One>, Later> queue_;
};

}  // namespace footplate
