#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "protocol/messages/event.h"
#include "protocol/order.h"
#include "runtime/base/clock.h"
#include "runtime/orders/coordinator.h"

namespace footplate {

/// Rank 0: an order of the training threads', which have paused for it and wait until it lets them go on.
/// Where the ranks couldn't agree on it in time it is given again, since nobody else will. Control thread.
class Proposal {
 public:
  using Clock = SteadyClock;
  struct Parts {
    Coordinator& coordinator;
    std::function<bool()> is_paused;
    std::chrono::milliseconds pause;  ///< before it is given again
    std::function<void(EventData event)> report;
  };

  explicit Proposal(Parts parts) : parts_(std::move(parts)) {}

  /// In place of one that is still under way: a loss has kept the ranks from it.
  void propose(Order order);
  void tick(Clock::time_point now);
  /// Every report.
  void note(const OrderReport& report);

 private:
  Parts parts_;
  std::optional<Order> order_;
  std::uint64_t id_ = 0;  ///< 0: it hasn't been given, or not again
  bool aborted_ = false;
  Clock::time_point next_try_{};
};

}  // namespace footplate
