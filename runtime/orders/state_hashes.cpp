#include "runtime/orders/state_hashes.h"

#include <fmt/format.h>

#include <algorithm>

namespace footplate {

std::optional<StateHashes::Mismatch> StateHashes::add(int rank, std::int64_t step, std::uint64_t hash) {
  auto& hashes = steps_[step];
  hashes[rank] = hash;
  if (static_cast<int>(hashes.size()) < world_size_) {
    if (steps_.size() > kMostSteps) steps_.erase(steps_.begin());
    return std::nullopt;
  }
  const auto complete = std::move(hashes);
  steps_.erase(step);

  std::map<std::uint64_t, std::vector<int>> groups;
  for (const auto& [who, value] : complete) groups[value].push_back(who);
  if (groups.size() == 1) return std::nullopt;
  const auto largest = std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  // Without a majority nobody knows which side is right.
  const bool majority = 2 * largest->second.size() > complete.size();
  Mismatch mismatch;
  mismatch.step = step;
  for (const auto& [who, value] : complete)
    if (!majority || value != largest->first) mismatch.odd.push_back(who);
  mismatch.text =
      majority ? fmt::format(
                     "after step {} rank {} differs from the others: its parameters or optimizer state "
                     "have drifted; resume from the last checkpoint before it, and suspect its memory",
                     step, fmt::join(mismatch.odd, ", rank "))
               : fmt::format(
                     "after step {} the ranks' parameters differ ({}): resume from the last checkpoint "
                     "before it",
                     step, fmt::format("ranks {}", fmt::join(mismatch.odd, ", ")));
  return mismatch;
}

}  // namespace footplate
