#include "runtime/control/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/orders/held_share.h"

namespace footplate {
namespace {

constexpr std::int64_t kUndefined = -1;

using AllStanding = std::map<int, message::Standing>;

template <class Number>
Number largest(const AllStanding& standing, Number message::Standing::*field) {
  Number most = 0;
  for (const auto& [rank, said] : standing) most = std::max(most, said.*field);
  return most;
}

bool any(const AllStanding& standing, bool message::Standing::*field) {
  return std::any_of(standing.begin(), standing.end(),
                     [&](const auto& entry) { return entry.second.*field; });
}

/// Which state no rank has any more; empty: all of it is somewhere.
std::string lost_state(const AllStanding& standing) {
  std::vector<HeldShare> held;
  bool with_copies = false;
  for (const auto& [rank, said] : standing) {
    if (said.step == kUndefined) continue;
    held.push_back({said.share, said.copied, said.shares});
    with_copies = with_copies || said.copied != said.share;
  }
  if (held.empty()) return "no rank is left whose state is whole";
  if (whole_division(held) > 0) return "";
  const int of = held.front().of;
  for (int share = 0; share < of; ++share)
    if (std::ranges::none_of(held, [&](const HeldShare& one) {
          return one.of == of && (one.share == share || one.copied == share);
        }))
      return fmt::format("share {} of {} of the optimizer's state (optim.shard) was lost{}", share + 1, of,
                         with_copies ? " together with its copy on another rank (ckpt.redundancy)" : "");
  return "";
}

/// The newest step that a rank has completed, and the first one that has; one of `odd` where all are.
std::pair<std::int64_t, int> newest_step(const AllStanding& standing, const std::vector<int>& odd) {
  const auto is_odd = [&](int rank) { return std::ranges::find(odd, rank) != odd.end(); };
  std::pair<std::int64_t, int> newest{kUndefined, 0};
  for (const auto& [rank, said] : standing)
    if (said.step > newest.first || (said.step == newest.first && is_odd(newest.second) && !is_odd(rank)))
      newest = {said.step, rank};
  return newest;
}

/// As those have it who have applied most orders: what the others have yet to apply brings them there, too.
/// Where only some of them are paused, a loss has kept the rest from it, and the step is tried again.
bool is_paused(const AllStanding& standing) {
  const bool all_undefined =
      std::ranges::all_of(standing, [](const auto& entry) { return entry.second.step == kUndefined; });
  std::pair<std::uint64_t, std::int64_t> farthest{0, kUndefined};
  bool paused = false;
  for (const auto& [rank, said] : standing) {
    if (said.step == kUndefined && !all_undefined) continue;  // it may join just now
    const std::pair how_far{said.applied, said.reached};
    if (how_far < farthest) continue;
    paused = said.paused && (how_far > farthest || paused);
    farthest = how_far;
  }
  return paused;
}

/// `lost`: as of lost_state(). Whoever has heard that all are at the end may have left already.
void go_back(message::Rejoin& verdict, const std::string& lost, const AllStanding& standing,
             const NewestCheckpoint& newest) {
  const std::int64_t reached = largest(standing, &message::Standing::reached);
  Result<CheckpointAt> checkpoint = fail(ErrorKind::refused, "the run was ending");
  if (!verdict.finished) checkpoint = newest(reached);
  if (!checkpoint) {
    verdict.impossible = lost + ", and " + checkpoint.error().message;
    return;
  }
  verdict.checkpoint = checkpoint->path;
  verdict.left = reached;
  verdict.step = checkpoint->step;
}

/// A periodic save has none: where some ranks are at that one, others already at an order's at the same step,
/// the order's is made.
std::string tag_of_save(const AllStanding& standing) {
  for (const auto& [rank, said] : standing)
    if (said.save && !said.tag.empty()) return said.tag;
  return "";
}

/// The last order that was refused as it was applied, and why, as whoever knows it has it.
void set_last_refused(message::Rejoin& verdict, const AllStanding& standing) {
  for (const auto& [rank, said] : standing) {
    if (said.refused <= verdict.refused) continue;
    verdict.refused = said.refused;
    verdict.refusal = said.refusal;
  }
}

}  // namespace

void Recovery::add(int source, const message::Standing& standing) {
  if (standing.generation == generation_) standing_[source] = standing;
}

std::vector<int> Recovery::awaited() const {
  std::vector<int> awaited;
  for (int rank = 0; rank < world_size_; ++rank)
    if (!standing_.contains(rank)) awaited.push_back(rank);
  return awaited;
}

std::optional<message::Rejoin> Recovery::verdict(const NewestCheckpoint& newest) const {
  if (static_cast<int>(standing_.size()) < world_size_) return std::nullopt;
  message::Rejoin verdict;
  verdict.generation = generation_;
  std::tie(verdict.step, verdict.source) = newest_step(standing_, odd_);
  verdict.finished = any(standing_, &message::Standing::finished);
  if (const std::string lost = lost_state(standing_); !lost.empty())
    go_back(verdict, lost, standing_, newest);
  if (!verdict.impossible.empty()) return verdict;
  const bool goes_back = !verdict.checkpoint.empty();
  for (const auto& [rank, said] : standing_) {
    if (goes_back || said.step != verdict.step) verdict.behind.push_back(rank);
    if (said.commit && (!verdict.commit || said.commit->ticket > verdict.commit->ticket))
      verdict.commit = said.commit;
  }
  verdict.paused = is_paused(standing_);
  verdict.shared = any(standing_, &message::Standing::shared);
  verdict.tag = tag_of_save(standing_);
  // A periodic one is of a step that comes again.
  verdict.save = any(standing_, &message::Standing::save) && !(goes_back && verdict.tag.empty());
  verdict.sequence = largest(standing_, &message::Standing::sequence);
  verdict.commits = largest(standing_, &message::Standing::commits);
  verdict.begun = largest(standing_, &message::Standing::begun);
  verdict.applied = largest(standing_, &message::Standing::applied);
  verdict.ticket = largest(standing_, &message::Standing::ticket);
  verdict.order = largest(standing_, &message::Standing::order);
  set_last_refused(verdict, standing_);
  return verdict;
}

}  // namespace footplate
