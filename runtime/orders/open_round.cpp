#include "runtime/orders/open_round.h"

#include <algorithm>
#include <utility>

namespace footplate {

OpenRound::OpenRound(OrderEntry entry, std::uint64_t ticket, int world_size, Clock::time_point now,
                     const ControlTimes& times)
    : entry_(std::move(entry)),
      ticket_(ticket),
      answers_(static_cast<std::size_t>(world_size)),
      deadline_(now + times.outcome),
      patience_(now, times) {}

message::ToRanks OpenRound::question() const {
  return message::Prepare{ticket_, entry_.order, entry_.withdraws};
}

bool OpenRound::add_prepared(int rank) {
  answers_[static_cast<std::size_t>(rank)] = 0;
  return unanswered().empty();
}

void OpenRound::start_fencing() {
  fencing_ = true;
  std::fill(answers_.begin(), answers_.end(), std::nullopt);
}

bool OpenRound::add_fence(int rank, std::int64_t step) {
  answers_[static_cast<std::size_t>(rank)] = step;
  return unanswered().empty();
}

std::int64_t OpenRound::first_step(std::int64_t least) const {
  for (const auto& fence : answers_) least = std::max(least, *fence);
  return least;
}

std::vector<int> OpenRound::unanswered() const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < answers_.size(); ++rank)
    if (!answers_[rank]) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

}  // namespace footplate
