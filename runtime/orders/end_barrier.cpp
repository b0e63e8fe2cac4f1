#include "runtime/orders/end_barrier.h"

namespace footplate {

void EndBarrier::go_on(int world_size, std::uint64_t commits) {
  ranks_.assign(static_cast<std::size_t>(world_size), std::nullopt);
  standing_.clear();
  commits_ = commits;
}

void EndBarrier::add(int rank, std::int64_t step, std::uint64_t commits) {
  std::optional<Standing>& its = ranks_[static_cast<std::size_t>(rank)];
  if (its && --standing_[its->commits] == 0) standing_.erase(its->commits);
  its = Standing{step, commits};
  ++standing_[commits];
}

bool EndBarrier::all_are_there() const {
  const auto found = standing_.find(commits_);
  return found != standing_.end() && found->second == ranks_.size();
}

}  // namespace footplate
