#include "runtime/control/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace footplate {
namespace {

constexpr std::int64_t kUndefined = -1;

using AllStanding = std::map<int, message::Standing>;

std::uint64_t largest(const AllStanding& standing, std::uint64_t message::Standing::*field) {
  std::uint64_t most = 0;
  for (const auto& [rank, said] : standing) most = std::max(most, said.*field);
  return most;
}

bool any(const AllStanding& standing, bool message::Standing::*field) {
  return std::any_of(standing.begin(), standing.end(),
                     [&](const auto& entry) { return entry.second.*field; });
}

/// Why there is sharded state that no rank has any more; empty: each share is somewhere. Where a rank was
/// lost as the state was being divided, some may have all of it, and others shares.
std::string lost_shares(const AllStanding& standing) {
  std::set<int> there;
  int of = 1;
  for (const auto& [rank, said] : standing) {
    if (said.step == kUndefined) continue;
    if (said.shares == 1) return "";
    of = said.shares;
    there.insert({said.share, said.copied});
  }
  for (int share = 0; share < of; ++share)
    if (!there.contains(share))
      return fmt::format(
          "share {} of {} of the optimizer's state (optim.shard) was lost together with its copy "
          "on another rank (ckpt.redundancy)",
          share + 1, of);
  return "";
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

std::optional<message::Rejoin> Recovery::verdict() const {
  if (static_cast<int>(standing_.size()) < world_size_) return std::nullopt;
  message::Rejoin verdict;
  verdict.generation = generation_;
  verdict.step = kUndefined;
  for (const auto& [rank, said] : standing_) {
    if (said.step > verdict.step) verdict.source = rank;
    verdict.step = std::max(verdict.step, said.step);
  }
  if (verdict.step == kUndefined) {
    verdict.impossible = "no rank is left whose state is whole";
    return verdict;
  }
  if (verdict.impossible = lost_shares(standing_); !verdict.impossible.empty()) return verdict;
  for (const auto& [rank, said] : standing_) {
    if (said.step != verdict.step) verdict.behind.push_back(rank);
    if (said.commit && (!verdict.commit || said.commit->ticket > verdict.commit->ticket))
      verdict.commit = said.commit;
  }
  verdict.paused = standing_.at(verdict.source).paused;
  verdict.shared = any(standing_, &message::Standing::shared);
  verdict.finished = any(standing_, &message::Standing::finished);
  verdict.save = any(standing_, &message::Standing::save);
  verdict.tag = tag_of_save(standing_);
  verdict.sequence = largest(standing_, &message::Standing::sequence);
  verdict.commits = largest(standing_, &message::Standing::commits);
  verdict.begun = largest(standing_, &message::Standing::begun);
  verdict.ticket = largest(standing_, &message::Standing::ticket);
  verdict.order = largest(standing_, &message::Standing::order);
  set_last_refused(verdict, standing_);
  return verdict;
}

}  // namespace footplate
