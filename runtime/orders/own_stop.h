#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "protocol/order.h"
#include "runtime/base/clock.h"

namespace footplate {

/// Rank 0: the stop that the run gives itself, by an order of its own. It is tried until it is applied: a
/// rank that is stuck for a while must not lose it.
class OwnStop {
 public:
  using Clock = SteadyClock;

  /// Whether it is the first; only that one counts.
  bool request(const std::string& reason, bool resumable, bool save, Clock::time_point now);
  bool is_requested() const { return stop_.has_value(); }
  /// Whether its order is to be given, the first time or again.
  bool is_due(Clock::time_point now) const { return now >= next_try(); }
  /// max(): not requested, or its order is on the way.
  Clock::time_point next_try() const;
  /// The order, by its number, which is on its way from now on.
  Order order(std::uint64_t id);
  /// That order, if it is this one's, is aborted: it is given again then.
  void aborted(std::uint64_t id, Clock::time_point again);

 private:
  struct Stop {
    std::string reason;
    bool resumable = false;
    bool save = true;
    std::uint64_t id = 0;  ///< of the order on its way; 0: none
    Clock::time_point again;
  };
  std::optional<Stop> stop_;
};

}  // namespace footplate
