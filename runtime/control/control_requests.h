#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "protocol/messages/link_messages.h"
#include "protocol/mutex.h"
#include "runtime/base/condition.h"
#include "runtime/comm/watchdog.h"

namespace footplate {

/// What other threads of this rank ask of the control thread. They wake it, then it looks here.
class ControlRequests {
 public:
  /// Why the run should stop, and whether it can be resumed.
  struct Stop {
    const char* reason;
    bool resumable;
  };

  // Any thread.

  /// Whether it is the first; only that one counts. Async-signal-safe. `reason` has to be a literal.
  bool request_stop(const char* reason, bool resumable) noexcept;
  void add_message(ConsoleMessage message);
  void add_finding(const Watchdog::Finding& finding);
  /// Calls `wake`, and returns once settled() was called, or after `at_most`.
  template <class Wake>
  void wait_settled(std::chrono::milliseconds at_most, Wake wake) {
    MutexLock lock(mutex_);
    settle_wanted_ = true;
    wake();
    settled_.wait_for(lock, at_most, [this]() REQUIRES(mutex_) { return !settle_wanted_; });
  }

  // The control thread.

  /// The stop that rank 0 hasn't been told of; once.
  std::optional<Stop> take_stop();
  /// Rank 0 may be another rank now: take_stop() gives the stop again.
  void tell_stop_again() { stop_told_ = false; }
  std::vector<ConsoleMessage> take_messages();
  std::vector<Watchdog::Finding> take_findings();
  bool settle_wanted() const;
  void settled();

 private:
  std::atomic<const char*> stop_reason_{nullptr};
  std::atomic<bool> stop_resumable_{false};
  bool stop_told_ = false;  ///< control thread

  mutable Mutex mutex_;
  Condition settled_;
  bool settle_wanted_ GUARDED_BY(mutex_) = false;
  std::vector<ConsoleMessage> messages_ GUARDED_BY(mutex_);
  std::vector<Watchdog::Finding> findings_ GUARDED_BY(mutex_);
};

}  // namespace footplate
