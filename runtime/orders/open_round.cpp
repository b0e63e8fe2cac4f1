#include "runtime/orders/open_round.h"

#include <algorithm>
#include <utility>

namespace footplate {

OpenRound::OpenRound(OrderEntry entry, std::uint64_t ticket, int world_size, Clock::time_point now,
                     const ControlTimes& times)
    : entry_(std::move(entry)),
      ticket_(ticket),
      answers_(world_size),
      deadline_(now + times.outcome),
      patience_(now, times) {}

message::ToRanks OpenRound::question() const {
  return message::Prepare{ticket_, entry_.order, entry_.withdraws};
}

bool OpenRound::add_prepared(int rank) {
  answers_.add(rank, 0);
  return answers_.are_complete();
}

void OpenRound::start_fencing() {
  fencing_ = true;
  answers_ = Answers<std::int64_t>(answers_.world_size());
}

bool OpenRound::add_fence(int rank, std::int64_t step) {
  answers_.add(rank, step);
  return answers_.are_complete();
}

std::int64_t OpenRound::first_step(std::int64_t least) const {
  for (int rank = 0; rank < answers_.world_size(); ++rank) least = std::max(least, answers_.of(rank));
  return least;
}

}  // namespace footplate
