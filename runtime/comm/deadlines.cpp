#include "runtime/comm/deadlines.h"

#include <algorithm>

namespace footplate {

Deadlines::Duration Deadlines::of(const LedgerEntry& entry) const {
  constexpr std::int64_t kMillion = 1'000'000;
  const Duration by_size = entry.elements < 10 * kMillion    ? small
                           : entry.elements < 100 * kMillion ? medium
                                                             : large;
  if (entry.phase == Phase::evaluation) return std::max(by_size, evaluation);
  const bool in_step = entry.phase >= Phase::data && entry.phase <= Phase::optimizer;
  return in_step ? std::max(by_size, training) : by_size;
}

Deadlines::Duration Deadlines::shortest() const {
  return std::min({small, medium, large});
}

}  // namespace footplate
