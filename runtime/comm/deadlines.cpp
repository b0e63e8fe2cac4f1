#include "runtime/comm/deadlines.h"

#include <algorithm>
#include <utility>

namespace footplate {
namespace {

/// A deadline and the setting that it comes from.
using Named = std::pair<Deadlines::Duration, const char*>;

Named named(const Deadlines& deadlines, const LedgerEntry& entry) {
  constexpr std::int64_t kMillion = 1'000'000;
  if (entry.elements < 10 * kMillion) return {deadlines.small, "comm.small_timeout_s"};
  const Named by_size = entry.elements < 100 * kMillion ? Named(deadlines.medium, "comm.medium_timeout_s")
                                                        : Named(deadlines.large, "comm.large_timeout_s");
  const bool in_step = entry.phase >= Phase::data && entry.phase <= Phase::optimizer;
  if (!in_step && entry.phase != Phase::evaluation) return by_size;
  const Named by_phase = in_step ? Named(deadlines.training, "comm.timeout_s")
                                 : Named(deadlines.evaluation, "comm.eval_timeout_s");
  return by_phase.first >= by_size.first ? by_phase : by_size;
}

}  // namespace

Deadlines::Duration Deadlines::of(const LedgerEntry& entry) const {
  return named(*this, entry).first;
}

const char* Deadlines::setting_of(const LedgerEntry& entry) const {
  return named(*this, entry).second;
}

Deadlines::Duration Deadlines::shortest() const {
  return std::min({small, medium, large});
}

}  // namespace footplate
