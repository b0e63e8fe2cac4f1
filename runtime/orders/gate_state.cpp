#include "runtime/orders/gate_state.h"

#include <algorithm>
#include <utility>

namespace footplate {

std::int64_t GateState::next_due() const {
  const bool stands = hold.holds() || course.paused() || recovery.holds();
  std::int64_t next = stands ? 0 : course.settings().integer("train.steps");
  if (const auto step = pending.next_step()) next = std::min(next, *step);
  return next;
}

void GateState::look_ahead() {
  fence.set_next_due(next_due());
}

void GateState::release_fence() {
  fence.release(next_due());
}

/// A stop doesn't touch the calls before it in its own order: that has left the list by then.
void GateState::look_for_abandon() {
  abandon.store(pending.end_is_due() || running.is_cancelled() || meetings.missed() || recovery.holds(),
                std::memory_order_relaxed);
}

void GateState::tell(GateEvent event) {
  events.push(std::move(event));
  wake();
}

}  // namespace footplate
