#include "runtime/watch/rank_barrier.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/watch/messages.h"

namespace footplate {

void RankBarrier::handle(int source, const Json& message, Clock::time_point now) {
  if (message.at("t") != message::kArrived) return;
  const std::uint64_t ticket = message.at("ticket");
  if (ticket <= closed_) return;  // it has come too late, and been told so
  if (!open_) {
    const double within_s = message.at("within_s");
    const auto within = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(within_s));
    open_.emplace(Open{ticket, message.at("what"), within_s, now + within, {}});
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
  Json message = {{"t", message::kMet}, {"ticket", open_->ticket}};
  if (!error.empty()) message["error"] = error;
  open_.reset();
  parts_.send_all(message);
}

RankBarrier::Clock::time_point RankBarrier::next_tick() const {
  return open_ ? open_->until : Clock::time_point::max();
}

}  // namespace footplate
