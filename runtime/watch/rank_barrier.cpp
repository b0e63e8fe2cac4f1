#include "runtime/watch/rank_barrier.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace footplate {

void RankBarrier::handle(int source, const message::Arrived& arrived, Clock::time_point now) {
  if (arrived.ticket <= closed_) return;  // it has come too late, and been told so
  if (!open_) {
    const auto within =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(arrived.within_s));
    open_.emplace(Open{arrived.ticket, arrived.what, arrived.within_s, now + within, {}});
  }
  open_->here.insert(source);
  if (static_cast<int>(open_->here.size()) == parts_.world_size) close("");
}

void RankBarrier::tick(Clock::time_point now) {
  if (open_ && now >= open_->until) close(absence(now));
}

std::string RankBarrier::absence(Clock::time_point now) const {
  std::vector<int> absent;
  for (int rank = 0; rank < parts_.world_size; ++rank)
    if (!open_->here.contains(rank)) absent.push_back(rank);
  return fmt::format("rank {} didn't come to {} within {:.6g} s; {}", fmt::join(absent, ", "), open_->what,
                     open_->within_s, parts_.status.whom(absent, now));
}

void RankBarrier::close(const std::string& error) {
  closed_ = open_->ticket;
  open_.reset();
  parts_.send_all(message::Met{closed_, error});
}

RankBarrier::Clock::time_point RankBarrier::next_tick() const {
  return open_ ? open_->until : Clock::time_point::max();
}

}  // namespace footplate
