#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "protocol/mutex.h"
#include "runtime/base/condition.h"
#include "runtime/base/progress.h"
#include "runtime/orders/applied_orders.h"
#include "runtime/orders/event_queue.h"
#include "runtime/orders/meetings.h"
#include "runtime/orders/pending_orders.h"
#include "runtime/orders/recovery_hold.h"
#include "runtime/orders/rule_hold.h"
#include "runtime/orders/run_course.h"
#include "runtime/orders/running_call.h"
#include "runtime/orders/step_fence.h"

namespace footplate {

/// Where the training thread stands still.
enum class Held { no, fence, pause, end, rule, lost };

/// What the two threads of a rank share, under one mutex: each part has a subject and knows nothing of
/// threads.
struct GateState {
  /// `wake` ends the control thread's sleep; any thread.
  GateState(Progress& training_progress, Settings settings, Json store, std::function<void()> wake_control)
      : progress(training_progress),
        wake(std::move(wake_control)),
        fence(training_progress),
        course(std::move(settings), std::move(store)) {}

  /// After a change of what the training thread may have to stop for at a step.
  void look_ahead() REQUIRES(mutex);
  /// The same, and the outcome that the fence was for is known: one store for both.
  void release_fence() REQUIRES(mutex);
  /// After a change of what a running call is given up for.
  void look_for_abandon() REQUIRES(mutex);
  /// Tells the control thread at once.
  void tell(GateEvent event) REQUIRES(mutex);

  Progress& progress;
  const std::function<void()> wake;
  std::atomic<bool> abandon{false};  ///< StepGate::abandon()

  mutable Mutex mutex;
  Condition outcome;  ///< the control thread has something new for the training thread
  StepFence fence GUARDED_BY(mutex);
  PendingOrders pending GUARDED_BY(mutex);
  RunCourse course GUARDED_BY(mutex);
  AppliedOrders applied GUARDED_BY(mutex);
  RunningCall running GUARDED_BY(mutex);
  RuleHold hold GUARDED_BY(mutex);
  Meetings meetings GUARDED_BY(mutex);
  RecoveryHold recovery GUARDED_BY(mutex);
  EventQueue events GUARDED_BY(mutex);
  Held held GUARDED_BY(mutex) = Held::no;
  std::int64_t held_at GUARDED_BY(mutex) = 0;                    ///< step
  std::optional<std::uint64_t> announced_end GUARDED_BY(mutex);  ///< the number of commits known then

 private:
  std::int64_t next_due() const REQUIRES(mutex);
};

}  // namespace footplate
