#include "runtime/orders/step_fence.h"

#include <algorithm>

namespace footplate {

std::int64_t StepFence::propose() {
  // Publish the fence, then read the step again: a training thread that passed it in between is seen.
  do {
    put_at(progress_.step() + 1);
  } while (progress_.step() >= fence_);
  return fence_;
}

void StepFence::put_at(std::int64_t step) {
  fence_ = step;
  store();
}

void StepFence::release(std::int64_t next_due) {
  fence_ = kNever;
  set_next_due(next_due);
}

void StepFence::set_next_due(std::int64_t step) {
  next_due_ = step;
  store();
}

void StepFence::count_stop(std::chrono::nanoseconds waited) {
  time_stopped_ += waited;
  ++stops_;
}

void StepFence::store() {
  interesting_.store(std::min(fence_, next_due_), std::memory_order_seq_cst);
}

}  // namespace footplate
