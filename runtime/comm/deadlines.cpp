#include "runtime/comm/deadlines.h"

#include <algorithm>
#include <utility>

#include "protocol/deadline_names.h"

namespace footplate {
namespace {

/// A deadline and the setting that it comes from.
using Named = std::pair<Deadlines::Duration, const char*>;

Named named(const Deadlines& deadlines, const LedgerEntry& entry) {
  const char* setting = deadline_by_size(entry.elements);
  if (entry.elements < kSmallCollective) return {deadlines.small, setting};
  const Named by_size(entry.elements < kLargeCollective ? deadlines.medium : deadlines.large, setting);
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
