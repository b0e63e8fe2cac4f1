#include "runtime/orders/event_queue.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "runtime/watch/event_parts.h"

namespace footplate {
namespace {

/// Published events that the control thread hasn't fetched; more are dropped and counted.
constexpr std::uint64_t kMostPublished = 4096;
/// Events that come closer to each other than this are a stream.
constexpr std::chrono::milliseconds kStreamGap{250};

}  // namespace

bool EventQueue::has_room() {
  if (published_ < kMostPublished) return true;
  ++dropped_;
  return false;
}

bool EventQueue::publish(Published event) {
  const bool urgent = topic_of(event.data) != Topic::metrics || followed_;
  const bool first = urgent && urgent_ == 0 && !streaming_;
  const bool held = event.hold != 0;
  ++published_;
  if (urgent) ++urgent_;
  push(std::move(event));
  return first || held;
}

std::vector<GateEvent> EventQueue::drain(SteadyClock::time_point now) {
  streaming_ = urgent_ > 0 && now - last_urgent_ < kStreamGap;
  if (urgent_ > 0) last_urgent_ = now;
  if (dropped_ > 0) {
    push(Published{
        warning_of(
            WarningKind::lost_events,
            fmt::format("{} events came faster than they could be recorded and were dropped", dropped_)),
        std::chrono::system_clock::now(), 0});
    dropped_ = 0;
  }
  published_ = urgent_ = 0;
  return std::exchange(events_, {});
}

}  // namespace footplate
