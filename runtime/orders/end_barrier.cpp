#include "runtime/orders/end_barrier.h"

#include <algorithm>

namespace footplate {

void EndBarrier::go_on(int world_size, std::uint64_t commits) {
  ranks_.assign(static_cast<std::size_t>(world_size), std::nullopt);
  commits_ = commits;
}

void EndBarrier::add(int rank, std::int64_t step, std::uint64_t commits) {
  ranks_[static_cast<std::size_t>(rank)] = Standing{step, commits};
}

bool EndBarrier::all_are_there() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [this](const auto& rank) { return rank && rank->commits == commits_; });
}

}  // namespace footplate
