#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "protocol/order.h"
#include "protocol/settings.h"
#include "runtime/orders/call_result.h"
#include "runtime/watch/state_hash.h"

namespace footplate {

// What the training thread tells the control thread.

/// An order was due.
struct OrderApplied {
  std::uint64_t order = 0;
  std::int64_t step = 0;
  std::string digest;
  std::vector<Moved> moved;
  std::optional<Error> error;       ///< it had become impossible; nothing changed, on any rank
  std::optional<double> renewed_s;  ///< communicators were made anew for it, in so many seconds
};
/// A call of an order has come to another state.
struct CallMoved {
  std::uint64_t order = 0;
  std::size_t call = 0;
  std::string action;
  CallState state = CallState::running;
  CallResult result;
  std::string error;
};
/// The training thread stands at the end of the run.
struct ReachedEnd {
  std::int64_t step = 0;
  std::uint64_t commits = 0;  ///< how many commits this rank had heard of by then
};
/// An event for the console and the records.
struct Published {
  EventData data;
  std::chrono::system_clock::time_point time;
  std::uint64_t hold = 0;  ///< training waits for the release of this
};
/// The training thread has come to a meeting.
struct Arrived {
  std::uint64_t ticket = 0;  ///< 1, 2, 3, … the same on all ranks
  std::string what;
  std::chrono::milliseconds within{0};
};
/// What footplate itself orders.
struct Proposed {
  Order order;
};
/// After a loss, or an admission: all ranks have the same state.
struct AllLevel {};
using GateEvent =
    std::variant<OrderApplied, CallMoved, ReachedEnd, StateHash, Published, Arrived, Proposed, AllLevel>;

}  // namespace footplate
