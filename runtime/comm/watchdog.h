#pragma once

#include <functional>

#include "protocol/mutex.h"
#include "runtime/base/condition.h"
#include "runtime/base/thread.h"
#include "runtime/comm/deadlines.h"
#include "runtime/comm/ledger.h"

namespace footplate {

/// Sees to it that no collective hangs unnoticed: one thread that calls no MPI, reads the ledger alone, and
/// sleeps until the earliest moment at which anything could be overdue (minutes, as a rule). The operations
/// pay nothing for it.
class Watchdog {
 public:
  /// What has passed its deadline, or (`over`) has ended after that.
  struct Finding {
    LedgerEntry entry;
    Deadlines::Duration limit;
    bool over = false;
    const char* setting = "";  ///< that `limit` comes from
  };
  using Listener = std::function<void(const Finding&)>;

  /// `listener` is called on the watchdog's thread, at most twice for an operation. `ledger` outlives this.
  Watchdog(const Ledger& ledger, Deadlines deadlines, Listener listener);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Any thread; also for what is under way.
  void set(const Deadlines& deadlines);

 private:
  using Clock = LedgerEntry::Clock;
  void watch();
  Clock::duration look(const Deadlines& deadlines);
  void follow(const LedgerEntry& current);

  const Ledger& ledger_;
  const Listener listener_;
  std::optional<Finding> overdue_;  ///< told, and not over; watchdog thread
  Mutex mutex_;
  Condition changed_;
  Deadlines deadlines_ GUARDED_BY(mutex_);
  bool renewed_ GUARDED_BY(mutex_) = false;
  bool quit_ GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace footplate
