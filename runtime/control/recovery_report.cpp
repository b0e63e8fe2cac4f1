#include "runtime/control/recovery_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "runtime/watch/event_parts.h"

namespace footplate {

std::vector<int> numbers_before(const Membership& before, const Membership& after) {
  std::vector<int> numbers;
  for (const int origin : after.origins) {
    const auto found = std::find(before.origins.begin(), before.origins.end(), origin);
    numbers.push_back(found == before.origins.end() ? -1 : static_cast<int>(found - before.origins.begin()));
  }
  return numbers;
}

std::vector<int> lost_between(const Membership& before, const Membership& after) {
  std::vector<int> lost;
  for (int rank = 0; rank < before.world_size(); ++rank) {
    const int origin = before.origins[static_cast<std::size_t>(rank)];
    if (std::find(after.origins.begin(), after.origins.end(), origin) == after.origins.end())
      lost.push_back(rank);
  }
  return lost;
}

std::vector<int> origins_lost_between(const Membership& before, const Membership& after) {
  std::vector<int> origins;
  for (const int rank : lost_between(before, after))
    origins.push_back(before.origins[static_cast<std::size_t>(rank)]);
  return origins;
}

namespace {

/// "training goes on with 2 ranks (12 ms)".
std::string how_it_goes_on(const message::Rejoin& verdict, int ranks, std::int64_t took_ms) {
  const std::string with = fmt::format("with {} rank{} ({} ms)", ranks, ranks == 1 ? "" : "s", took_ms);
  if (verdict.checkpoint.empty()) return "training goes on " + with;
  return fmt::format("training goes back to the checkpoint of step {}, since nobody has all of its state, {}",
                     verdict.step, with);
}

}  // namespace

RankChange recovery_report(const RecoveryStory& story, const Membership& after,
                           const message::Rejoin& verdict, SteadyClock::time_point now) {
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(now - story.since).count();
  const int left = after.world_size();
  const std::vector<int> lost = lost_between(story.before, after);
  const std::vector<int> joined = lost_between(after, story.before);
  const bool goes_back = !verdict.checkpoint.empty();
  const std::int64_t step = goes_back ? verdict.left : verdict.step;
  const std::string goes_on = how_it_goes_on(verdict, left, took);
  std::string text;
  if (lost.empty() && joined.empty())  // a collective hung, or somebody was to join and didn't
    text = fmt::format("communicators were rebuilt at step {}{}; {}", step,
                       story.remedied.empty() ? "" : " (" + story.remedied + ")", goes_on);
  else if (lost.empty())
    text = fmt::format("rank {} joined at step {}; {}", fmt::join(joined, ", "), step, goes_on);
  else
    text = fmt::format("rank{} {} of {} lost at step {}{}; {}", lost.size() == 1 ? "" : "s",
                       fmt::join(lost, ", "), story.before.world_size(), step,
                       story.why_lost.empty() ? "" : " (" + story.why_lost + ")", goes_on);
  RankChange change = change_of(!lost.empty()    ? RankChangeKind::lost
                                : joined.empty() ? RankChangeKind::rebuilt
                                                 : RankChangeKind::joined,
                                std::move(text));
  change.ranks = lost.empty() ? joined : lost;
  change.world_size = left;
  change.step = verdict.step;
  if (goes_back) change.left = verdict.left;
  change.level = !verdict.behind.empty();
  change.ms = took;
  return change;
}

}  // namespace footplate
