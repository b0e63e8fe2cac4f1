#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "runtime/base/clock.h"
#include "runtime/base/thread.h"

namespace footplate {

/// A thread for calls that may never return: NCCL has no time limit inside (initialising, aborting). One call
/// at a time; where one doesn't come back in time its thread is left behind with it, and this can't be used
/// any more. One thread uses it at a time.
class BoundedThread {
 public:
  /// `name`: for top and debuggers, at most 15 letters.
  explicit BoundedThread(const char* name);
  /// Ends the thread, or leaves it behind where it is stuck.
  ~BoundedThread();
  BoundedThread(const BoundedThread&) = delete;
  BoundedThread& operator=(const BoundedThread&) = delete;

  /// Runs `call` on the thread and waits for its end. False: it hasn't ended by `until`, or an earlier one
  /// never did. What `call` refers to has to live for as long as the call may run, so give it shares.
  bool run(std::function<void()> call, SteadyClock::time_point until);

  bool stuck() const { return stuck_; }

 private:
  struct Shared;
  static void serve(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
  Thread thread_;
  bool stuck_ = false;
};

}  // namespace footplate
