#include "runtime/orders/state_hashes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace footplate {
namespace {

/// A text names no more tensors than that.
constexpr std::size_t kMostNamed = 3;

/// Adds to `names` those of which the two have said something else.
void add_differing(const StateHash& one, const StateHash& other, std::vector<std::string>& names) {
  if (one.tensors.size() != other.tensors.size()) return;
  for (std::size_t i = 0; i < one.tensors.size(); ++i) {
    const TensorHash& tensor = one.tensors[i];
    if (tensor != other.tensors[i] && std::find(names.begin(), names.end(), tensor.name) == names.end())
      names.push_back(tensor.name);
  }
}

/// " in a, b, c and 4 more tensors"; empty where none is known.
std::string place_of(const std::vector<std::string>& tensors) {
  if (tensors.empty()) return {};
  const auto named = tensors.begin() + static_cast<std::ptrdiff_t>(std::min(tensors.size(), kMostNamed));
  const auto more = tensors.end() - named;
  return fmt::format(" in {}{}", fmt::join(tensors.begin(), named, ", "),
                     more > 0 ? fmt::format(" and {} more tensor{}", more, more > 1 ? "s" : "") : "");
}

}  // namespace

std::optional<StateHashes::Mismatch> StateHashes::add(int rank, StateHash state) {
  const std::pair key(state.step, state.tensors.empty());
  OfRanks& reports = reports_[key];
  reports[rank] = std::move(state);
  if (static_cast<int>(reports.size()) < world_size_) {
    if (reports_.size() > kMostReports) reports_.erase(reports_.begin());
    return std::nullopt;
  }
  const OfRanks complete = std::move(reports);
  reports_.erase(key);

  std::map<std::uint64_t, std::vector<int>> groups;
  for (const auto& [who, report] : complete) groups[report.hash].push_back(who);
  if (groups.size() == 1) return std::nullopt;
  const auto largest = std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  // Without a majority nobody knows which side is right.
  return mismatch_of(complete, largest->second.front(), 2 * largest->second.size() > complete.size());
}

/// `reference`: a rank of the majority, or any one.
StateHashes::Mismatch StateHashes::mismatch_of(const OfRanks& reports, int reference, bool majority) {
  const StateHash& right = reports.at(reference);
  Mismatch mismatch;
  mismatch.step = right.step;
  for (const auto& [who, report] : reports) {
    if (!majority || report.hash != right.hash) mismatch.odd.push_back(who);
    add_differing(right, report, mismatch.tensors);
  }
  const std::string place = place_of(mismatch.tensors);
  const std::string sound =
      right.agreed
          ? fmt::format("they were the same after step {}; resume from a checkpoint of that step or before",
                        *right.agreed)
          : std::string("resume from the last checkpoint before it");
  mismatch.text =
      majority
          ? fmt::format(
                "after step {} rank {} differs from the others{}: its parameters or optimizer state "
                "have drifted; {}, and suspect its memory",
                mismatch.step, fmt::join(mismatch.odd, ", rank "), place, sound)
          : fmt::format("after step {} the ranks' parameters or optimizer states differ (ranks {}){}; {}",
                        mismatch.step, fmt::join(mismatch.odd, ", "), place, sound);
  return mismatch;
}

}  // namespace footplate
