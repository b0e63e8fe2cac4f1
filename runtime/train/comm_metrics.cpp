#include "runtime/train/comm_metrics.h"

#include <chrono>
#include <utility>

#include "runtime/base/times.h"

namespace footplate {
namespace {

/// Operations of fewer elements take their latency, not their bytes.
constexpr std::int64_t kSmall = 10'000;

constexpr double kBytesOfMega = 1e6;
constexpr double kNsOfMs = 1e6;

}  // namespace

void CommMetrics::configure(const Interval& every, Clock::time_point now) {
  if (every == every_) return;
  every_ = every;
  since_ = now;
}

CommMetrics::Counts CommMetrics::count() const {
  Counts counts;
  for (const CollectivePattern& pattern : ledger_->patterns()) {
    counts.operations += pattern.count;
    counts.bytes += pattern.bytes;
    if (pattern.kind == Collective::all_reduce && pattern.at_least >= kSmall) {
      counts.all_reduce_bytes += pattern.bytes;
      counts.all_reduce_ns += pattern.total.count();
    }
    if (pattern.at_least < kSmall) {
      counts.small += pattern.count;
      counts.small_ns += pattern.total.count();
    }
  }
  return counts;
}

bool CommMetrics::is_due(std::int64_t step, Clock::time_point now) const {
  if (every_.seconds > 0) return in_seconds(now - since_) >= every_.seconds;
  return every_.steps > 0 && step / every_.steps != since_step_ / every_.steps;
}

std::optional<Json> CommMetrics::take(std::int64_t step, Clock::time_point now) {
  if (ledger_ == nullptr || !is_due(step, now)) return std::nullopt;
  since_ = now;
  since_step_ = step;
  const Counts counts = count();
  const Counts before = std::exchange(before_, counts);
  const std::int64_t operations = counts.operations - before.operations;
  const double longest_small_ms = static_cast<double>(ledger_->take_longest(kSmall).count()) / kNsOfMs;
  if (operations == 0) return std::nullopt;
  Json line{{"comm/collectives", operations},
            {"comm/mbytes", static_cast<double>(counts.bytes - before.bytes) / kBytesOfMega},
            {"comm/timeouts", ledger_->overdue()}};
  if (const auto ns = static_cast<double>(counts.all_reduce_ns - before.all_reduce_ns); ns > 0)
    line["comm/all_reduce_mb_per_s"] =
        static_cast<double>(counts.all_reduce_bytes - before.all_reduce_bytes) / kBytesOfMega / (ns / 1e9);
  if (const std::int64_t small = counts.small - before.small; small > 0) {
    line["comm/small_ms"] =
        static_cast<double>(counts.small_ns - before.small_ns) / static_cast<double>(small) / kNsOfMs;
    line["comm/small_longest_ms"] = longest_small_ms;
  }
  return line;
}

}  // namespace footplate
