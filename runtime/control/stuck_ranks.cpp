#include "runtime/control/stuck_ranks.h"

#include <fmt/format.h>

#include "runtime/watch/event_parts.h"

namespace footplate {

void StuckRanks::follow(const Settings& settings) {
  limit_ = std::chrono::duration<double>(settings.number("comm.hard_limit_s"));
}

void StuckRanks::tick(Clock::time_point now) {
  if (limit_.count() <= 0) return;
  const auto stuck = parts_.status.stuck(limit_, now);
  if (!stuck || !killed_.emplace(stuck->host, stuck->pid).second) return;
  kill(*stuck, past_limit());
}

void StuckRanks::tick_recovery(const std::vector<int>& awaited, Clock::duration waited,
                               Clock::time_point now) {
  if (limit_.count() <= 0 || waited < limit_) return;
  for (const int rank : awaited) {
    const StatusTracker::Stuck stuck = parts_.status.who(rank, now);
    if (parts_.status.is_saving(rank) || stuck.pid == 0 || !killed_.emplace(stuck.host, stuck.pid).second)
      continue;
    kill(stuck, past_limit());
  }
}

void StuckRanks::drop(int rank, const std::string& user, Clock::time_point now) {
  if (rank <= 0 || rank >= parts_.channel.world_size()) return;
  kill(parts_.status.who(rank, now), "by comm.drop() of " + user);
}

void StuckRanks::kill(const StatusTracker::Stuck& stuck, const std::string& why) {
  parts_.report(change_of(stuck.rank, RankChangeKind::killed, fmt::format("killed {}: {}", why, stuck.text)));
  if (stuck.rank == parts_.channel.rank() && parts_.before_exit) parts_.before_exit();
  parts_.send_all(message::Die{stuck.rank, stuck.pid, stuck.host});
}

std::string StuckRanks::past_limit() const {
  return fmt::format("past comm.hard_limit_s ({:.3g} s)", limit_.count());
}

}  // namespace footplate
