#include "runtime/cuda/bounded_thread.h"

#include <utility>

#include "protocol/mutex.h"
#include "runtime/base/condition.h"

namespace footplate {

struct BoundedThread::Shared {
  Mutex mutex;
  Condition changed;
  std::function<void()> call GUARDED_BY(mutex);  ///< what is to run; empty: nothing
  bool running GUARDED_BY(mutex) = false;
  bool ended GUARDED_BY(mutex) = false;
};

BoundedThread::BoundedThread(const char* name)
    : shared_(std::make_shared<Shared>()), thread_(name, [shared = shared_] { serve(shared); }) {}

BoundedThread::~BoundedThread() {
  {
    const MutexLock lock(shared_->mutex);
    shared_->ended = true;
  }
  shared_->changed.notify_all();
  if (stuck_)
    thread_.detach();  // all it touches is shared
  else
    thread_.join();
}

void BoundedThread::serve(const std::shared_ptr<Shared>& shared) {
  MutexLock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&shared]() REQUIRES(shared->mutex) { return shared->ended || shared->call; });
    if (!shared->call) return;
    auto call = std::exchange(shared->call, nullptr);
    lock.unlock();
    call();
    call = nullptr;  // what it holds goes before anybody is told
    lock.lock();
    shared->running = false;
    shared->changed.notify_all();
  }
}

bool BoundedThread::run(std::function<void()> call, SteadyClock::time_point until) {
  if (stuck_) return false;
  MutexLock lock(shared_->mutex);
  shared_->call = std::move(call);
  shared_->running = true;
  shared_->changed.notify_all();
  stuck_ = !shared_->changed.wait_until(lock, until,
                                        [this]() REQUIRES(shared_->mutex) { return !shared_->running; });
  return !stuck_;
}

}  // namespace footplate
