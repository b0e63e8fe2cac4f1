#include "runtime/cuda/host_stream.h"

#include <deque>

#include "protocol/mutex.h"
#include "runtime/base/condition.h"

namespace footplate {
namespace {

/// For what is still enqueued when a stream ends.
constexpr std::chrono::seconds kEnd{1};

}  // namespace

struct HostStream::Shared : HostStreamHandle {
  struct Item {
    void (*run)(void* argument);
    void* argument;
  };
  Mutex mutex;
  Condition changed;
  std::deque<Item> waiting GUARDED_BY(mutex);
  bool running GUARDED_BY(mutex) = false;
  bool ended GUARDED_BY(mutex) = false;

  bool idle() const REQUIRES(mutex) { return waiting.empty() && !running; }
};

HostStream::HostStream() : shared_(std::make_shared<Shared>()) {
  shared_->enqueue = [](HostStreamHandle* stream, void (*run)(void*), void* argument) {
    auto& shared = *static_cast<Shared*>(stream);
    const MutexLock lock(shared.mutex);
    shared.waiting.push_back({run, argument});
    shared.changed.notify_all();
  };
  thread_ = Thread("nccl-stream", [shared = shared_] { serve(shared); });
}

HostStream::~HostStream() {
  bool idle = false;
  {
    MutexLock lock(shared_->mutex);
    idle =
        shared_->changed.wait_for(lock, kEnd, [this]() REQUIRES(shared_->mutex) { return shared_->idle(); });
    shared_->ended = true;
    shared_->changed.notify_all();
  }
  if (idle)
    thread_.join();
  else
    thread_.detach();  // all it touches is shared
}

nccl_abi::Stream HostStream::handle() {
  return static_cast<HostStreamHandle*>(shared_.get());
}

Result<bool> HostStream::drain(std::chrono::microseconds at_most) {
  MutexLock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, at_most,
                                   [this]() REQUIRES(shared_->mutex) { return shared_->idle(); });
}

void HostStream::serve(const std::shared_ptr<Shared>& shared) {
  MutexLock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(
        lock, [&shared]() REQUIRES(shared->mutex) { return shared->ended || !shared->waiting.empty(); });
    if (shared->waiting.empty()) return;
    const Shared::Item item = shared->waiting.front();
    shared->waiting.pop_front();
    shared->running = true;
    lock.unlock();
    item.run(item.argument);
    lock.lock();
    shared->running = false;
    shared->changed.notify_all();
  }
}

}  // namespace footplate
