#include "console/host/loop/stuck_rank.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace footplate::host {
namespace {

constexpr std::chrono::seconds kHeldUp{10};  ///< between two looks: this process was stopped, or swapped out
/// Rank 0 may have nothing to say for two seconds.
constexpr double kLeastPatience = 4;

}  // namespace

void StuckRank::look() {
  const bool held_up = state_.now - last_look_ > kHeldUp;
  last_look_ = state_.now;
  silent_since_ = std::max(silent_since_, held_up ? state_.now : state_.view.heard());
  // Where it is the only rank nothing goes on without it.
  if (!state_.view.known() || state_.view.result() || state_.view.world_size() < 2) return;
  const double limit = state_.view.settings().has("comm.hard_limit_s")
                           ? state_.view.settings().number("comm.hard_limit_s")
                           : 0;
  const double silent = std::chrono::duration<double>(state_.now - silent_since_).count();
  if (limit <= 0 || silent <= std::max(limit, kLeastPatience)) return;
  if (::getppid() != rank_) return;
  const std::string text =
      fmt::format("killed past comm.hard_limit_s ({:.3g} s): {}", limit, state_.view.silence(state_.now));
  spdlog::warn("{}", text);
  RankChange change;
  change.rank = 0;
  change.state = RankChangeKind::killed;
  change.text = text;
  state_.publish(std::move(change));
  ::kill(rank_, SIGKILL);
}

}  // namespace footplate::host
