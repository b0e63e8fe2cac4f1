#include "runtime/comm/launch_queue.h"

#include <fmt/format.h>

#include <chrono>

#include "protocol/mutex.h"
#include "runtime/base/condition.h"

namespace footplate {
namespace {

/// How long the destructor waits for operations under way.
constexpr std::chrono::seconds kDrain{5};

/// The state of one operation, shared between who waits and the communication thread.
class PendingWork : public Work {
 public:
  PendingWork(Collective kind, const char* name) : kind_(kind), name_(name) {}

  bool done() const override {
    MutexLock lock(mutex_);
    return outcome_.has_value();
  }

  Result<void> wait(Clock::time_point deadline) override {
    MutexLock lock(mutex_);
    if (!changed_.wait_until(lock, deadline, [this]() REQUIRES(mutex_) { return outcome_.has_value(); }))
      return fail(ErrorKind::timed_out,
                  fmt::format("{} of {} is not done at its deadline; it goes on", to_string(kind_), name_));
    return *outcome_;
  }

  void finish(Result<void> outcome) {
    MutexLock lock(mutex_);
    outcome_ = std::move(outcome);
    changed_.notify_all();
  }

 private:
  Collective kind_;
  const char* name_;
  mutable Mutex mutex_;
  Condition changed_;
  std::optional<Result<void>> outcome_ GUARDED_BY(mutex_);
};

/// Handed to the caller; the communication thread may outlive it.
class SharedWork : public Work {
 public:
  explicit SharedWork(std::shared_ptr<PendingWork> work) : work_(std::move(work)) {}
  bool done() const override { return work_->done(); }
  Result<void> wait(Clock::time_point deadline) override { return work_->wait(deadline); }

 private:
  std::shared_ptr<PendingWork> work_;
};

}  // namespace

struct LaunchQueue::Item {
  std::uint64_t sequence;
  Operation operation;
  std::shared_ptr<PendingWork> work;
};

struct LaunchQueue::Shared {
  explicit Shared(Ledger& the_ledger) : ledger(the_ledger) {}

  Ledger& ledger;
  Mutex mutex;
  Condition changed;
  std::deque<Item> waiting GUARDED_BY(mutex);
  bool running GUARDED_BY(mutex) = false;  ///< an operation is under way
  bool ended GUARDED_BY(mutex) = false;    ///< the queue is being destroyed
  Result<void> outcome GUARDED_BY(mutex);  ///< an error is that of everything to come

  bool idle() const REQUIRES(mutex) { return waiting.empty() && !running; }
};

LaunchQueue::LaunchQueue(Ledger& ledger, const Progress& progress)
    : ledger_(ledger), progress_(progress), shared_(std::make_shared<Shared>(ledger)) {
  thread_ = Thread("comm", [shared = shared_] { serve(shared); });
}

LaunchQueue::~LaunchQueue() {
  bool drained = false;
  {
    MutexLock lock(shared_->mutex);
    shared_->ended = true;
    shared_->changed.notify_all();
    drained = shared_->changed.wait_for(lock, kDrain,
                                        [this]() REQUIRES(shared_->mutex) { return shared_->idle(); });
  }
  if (drained)
    thread_.join();
  else
    thread_.detach();
}

std::unique_ptr<Work> LaunchQueue::launch(LedgerEntry entry, Operation operation) {
  auto work = std::make_shared<PendingWork>(entry.kind, entry.name);
  entry.step = progress_.step();
  entry.phase = progress_.phase();
  MutexLock lock(shared_->mutex);
  shared_->changed.wait(lock,
                        [this]() REQUIRES(shared_->mutex) { return shared_->waiting.size() < kMaxWaiting; });
  const std::uint64_t sequence = ledger_.enqueue(entry);
  shared_->waiting.push_back({sequence, std::move(operation), work});
  shared_->changed.notify_all();
  return std::make_unique<SharedWork>(std::move(work));
}

void LaunchQueue::close(Error error) {
  MutexLock lock(shared_->mutex);
  shared_->outcome = tl::unexpected(std::move(error));
}

bool LaunchQueue::closed() const {
  MutexLock lock(shared_->mutex);
  return !shared_->outcome;
}

bool LaunchQueue::wait_idle(std::chrono::milliseconds at_most) {
  MutexLock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, at_most,
                                   [this]() REQUIRES(shared_->mutex) { return shared_->idle(); });
}

void LaunchQueue::reopen(std::uint64_t sequence, std::uint32_t generation) {
  MutexLock lock(shared_->mutex);
  ledger_.restart(sequence, generation);
  shared_->outcome = {};
}

void LaunchQueue::serve(std::shared_ptr<Shared> shared) {
  MutexLock lock(shared->mutex);
  while (true) {
    shared->changed.wait(
        lock, [&shared]() REQUIRES(shared->mutex) { return shared->ended || !shared->waiting.empty(); });
    if (shared->waiting.empty()) return;
    Item item = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    shared->running = true;
    Result<void> outcome = shared->outcome;
    const bool runs = outcome.has_value();
    lock.unlock();

    shared->ledger.start(item.sequence);
    if (runs) outcome = item.operation();
    shared->ledger.finish(item.sequence);

    lock.lock();
    if (runs && shared->outcome) shared->outcome = outcome;  // else it may be open again
    item.work->finish(std::move(outcome));
    shared->running = false;
    shared->changed.notify_all();
  }
}

}  // namespace footplate
