#pragma once

#include <cstdint>
#include <optional>

#include "protocol/json.h"
#include "protocol/value.h"
#include "runtime/base/clock.h"
#include "runtime/comm/ledger.h"

namespace footplate {

/// The collectives of rank 0 as metrics (comm.metrics_every): what its ledger has counted since the last
/// line. Nothing is reduced for them, so no other rank has to know when they are due. Training thread.
class CommMetrics {
 public:
  using Clock = SteadyClock;

  /// `ledger` may be null: then there are none.
  explicit CommMetrics(const Ledger* ledger) : ledger_(ledger) {}

  void configure(const Interval& every, Clock::time_point now);

  /// What the line after `step` has of them, where they are due and there was a collective since the last
  /// time.
  std::optional<Json> take(std::int64_t step, Clock::time_point now);

 private:
  /// All so far.
  struct Counts {
    std::int64_t operations = 0, bytes = 0;
    std::int64_t all_reduce_bytes = 0, all_reduce_ns = 0;
    std::int64_t small = 0, small_ns = 0;
  };
  Counts count() const;
  bool is_due(std::int64_t step, Clock::time_point now) const;

  const Ledger* const ledger_;
  Interval every_;
  Clock::time_point since_{};  ///< the last time, or the beginning
  std::int64_t since_step_ = 0;
  Counts before_;  ///< as of then
};

}  // namespace footplate
