#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/watch/messages.h"
#include "runtime/watch/status_tracker.h"

namespace footplate {

/// Rank 0: the ranks come together before a collective that not all may reach (an evaluation's reduction).
/// Either all have come, or the bound has passed since the first came and none of them goes on: rank 0 alone
/// decides, so that all hear the same. A state machine as Coordinator is; control thread.
class RankBarrier {
 public:
  using Clock = SteadyClock;
  struct Parts {
    const StatusTracker& status;
    int world_size = 1;
    std::function<void(const message::ToRanks& message)> send_all;
  };

  explicit RankBarrier(Parts parts) : parts_(std::move(parts)) {}

  void handle(int source, const message::Arrived& arrived, Clock::time_point now);
  void tick(Clock::time_point now);
  Clock::time_point next_tick() const;
  bool awaiting_ranks() const { return open_.has_value(); }

 private:
  struct Open {
    std::uint64_t ticket = 0;
    std::string what;
    double within_s = 0;
    Clock::time_point until;
    std::set<int> here;
  };
  void close(const std::string& error);
  std::string absence(Clock::time_point now) const;

  Parts parts_;
  std::optional<Open> open_;
  std::uint64_t closed_ = 0;  ///< all up to this ticket are decided
};

}  // namespace footplate
