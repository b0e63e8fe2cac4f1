#include "runtime/comm/watchdog.h"

#include <algorithm>
#include <utility>

#include "protocol/mutex.h"

namespace footplate {
namespace {

/// While something is overdue: how soon its end is noticed.
constexpr std::chrono::milliseconds kOverdueLook{50};

}  // namespace

Watchdog::Watchdog(const Ledger& ledger, Deadlines deadlines, Listener listener)
    : ledger_(ledger), listener_(std::move(listener)), deadlines_(deadlines) {
  thread_ = Thread("watchdog", [this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    MutexLock lock(mutex_);
    quit_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Watchdog::set(const Deadlines& deadlines) {
  MutexLock lock(mutex_);
  if (deadlines_ == deadlines) return;
  deadlines_ = deadlines;
  renewed_ = true;
  changed_.notify_all();
}

void Watchdog::watch() {
  MutexLock lock(mutex_);
  while (!quit_) {
    const Deadlines deadlines = deadlines_;
    renewed_ = false;
    lock.unlock();
    const auto sleep = look(deadlines);
    lock.lock();
    changed_.wait_for(lock, sleep, [this]() REQUIRES(mutex_) { return quit_ || renewed_; });
  }
}

/// How long nothing can become overdue. What starts from now on has at least the shortest deadline; what has
/// started has its own. Behind others an operation waits on their account.
Watchdog::Clock::duration Watchdog::look(const Deadlines& deadlines) {
  const LedgerEntry current = ledger_.current();
  follow(current);
  const auto shortest = deadlines.shortest();
  if (current.sequence == 0 || current.is_finished() || !current.is_started()) return shortest;
  const auto limit = deadlines.of(current);
  const auto left = current.started + limit - Clock::now();
  if (left > Clock::duration::zero()) return std::min(left, shortest);
  if (!overdue_) {
    overdue_ = Finding{current, limit, false, deadlines.setting_of(current)};
    listener_(*overdue_);
  }
  return kOverdueLook;
}

void Watchdog::follow(const LedgerEntry& current) {
  if (!overdue_) return;
  if (current.sequence == overdue_->entry.sequence && !current.is_finished()) return;
  overdue_->entry = ledger_.find(overdue_->entry.sequence).value_or(overdue_->entry);
  overdue_->over = true;
  listener_(*std::exchange(overdue_, std::nullopt));
}

}  // namespace footplate
