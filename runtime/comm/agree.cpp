#include "runtime/comm/agree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace footplate {
namespace {

/// Of one rank's reason, its terminating zero included.
constexpr std::size_t kReasonBytes = 501;

bool names_ranks(const std::string& reason) {
  return reason.starts_with("rank ") || reason.starts_with("ranks ");
}

}  // namespace

Result<std::string> gather_reasons(Communicator& communicator, const std::string& reason) {
  std::vector<char> mine(kReasonBytes),
      theirs(kReasonBytes * static_cast<std::size_t>(communicator.world_size()));
  reason.copy(mine.data(), kReasonBytes - 1);
  const auto gathered =
      communicator
          .all_gather({mine.data(), static_cast<std::int64_t>(mine.size()), DataType::uint8},
                      {theirs.data(), static_cast<std::int64_t>(theirs.size()), DataType::uint8}, "reasons")
          ->wait();
  if (!gathered) return tl::unexpected(gathered.error());
  std::vector<std::pair<std::string, std::vector<int>>> reasons;  // in the order of their first ranks
  for (int rank = 0; rank < communicator.world_size(); ++rank) {
    const std::string said = theirs.data() + static_cast<std::size_t>(rank) * kReasonBytes;
    if (said.empty()) continue;
    const auto same =
        std::find_if(reasons.begin(), reasons.end(), [&](auto& one) { return one.first == said; });
    if (same != reasons.end())
      same->second.push_back(rank);
    else
      reasons.push_back({said, {rank}});
  }
  // What all have from an agreement before this one says whose it is.
  const auto all = static_cast<std::size_t>(communicator.world_size());
  if (reasons.size() == 1 && reasons.front().second.size() == all && names_ranks(reasons.front().first))
    return reasons.front().first;
  std::string text;
  for (const auto& [said, ranks] : reasons)
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", ranks.size() == 1 ? "rank" : "ranks",
                        fmt::join(ranks, ", "), said);
  return text;
}

Result<void> agree(Communicator& communicator, const Result<void>& mine) {
  // The kind travels too, so that every rank ends with the same exit code.
  std::int64_t worst = mine ? 0 : 1 + static_cast<std::int64_t>(mine.error().kind);
  const auto reduced =
      communicator.all_reduce({&worst, 1, DataType::int64}, ReduceOp::max, "verdict")->wait();
  if (!reduced) return reduced;
  if (worst == 0) return {};
  const auto reasons = gather_reasons(communicator, mine ? "" : mine.error().message);
  if (!reasons) return tl::unexpected(reasons.error());
  return fail(static_cast<ErrorKind>(worst - 1), *reasons);
}

Result<std::vector<int>> ranks_with_another(Communicator& communicator, std::uint64_t hash,
                                            const char* what) {
  const auto all = from_all_ranks(communicator, hash, what);
  if (!all) return tl::unexpected(all.error());
  std::vector<int> others;
  for (int rank = 1; rank < communicator.world_size(); ++rank)
    if ((*all)[static_cast<std::size_t>(rank)] != all->front()) others.push_back(rank);
  return others;
}

Result<std::string> from_rank(Communicator& communicator, int root, const std::string& text) {
  auto length = static_cast<std::int64_t>(text.size());
  if (auto told = communicator.broadcast({&length, 1, DataType::int64}, root, "length of a text")->wait();
      !told)
    return tl::unexpected(told.error());
  std::string all = communicator.rank() == root ? text : std::string(static_cast<std::size_t>(length), '\0');
  if (auto told = communicator.broadcast({all.data(), length, DataType::uint8}, root, "text")->wait(); !told)
    return tl::unexpected(told.error());
  return all;
}

}  // namespace footplate
