#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/orders/gate_events.h"

namespace footplate {

/// What the training thread has told and the control thread hasn't fetched yet. Published events are bounded
/// in number; the others are few. Guarded by the gate's mutex.
class EventQueue {
 public:
  void push(GateEvent event) { events_.push_back(std::move(event)); }

  /// Whether one more event can be published; one that can't is counted, and drain() tells of it.
  bool has_room();
  /// After has_room(). Whether the control thread should be woken for it.
  bool publish(Published event);

  /// Everything since the last drain, in order.
  std::vector<GateEvent> drain(SteadyClock::time_point now);

  /// Whether somebody follows the metrics: if not, they wait for the control thread's next turn.
  void set_followed(bool followed) { followed_ = followed; }
  /// Whether events come one upon the other: publish() doesn't wake for each.
  bool streaming() const { return streaming_; }

 private:
  std::vector<GateEvent> events_;
  std::uint64_t published_ = 0;  ///< among events_
  std::uint64_t urgent_ = 0;     ///< among those
  std::uint64_t dropped_ = 0;    ///< published ones that found the queue full
  bool followed_ = false;
  bool streaming_ = false;
  SteadyClock::time_point last_urgent_{};  ///< a drain that found urgent events
};

}  // namespace footplate
