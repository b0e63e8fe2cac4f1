#include "runtime/rank/fence_watch.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <utility>

namespace footplate {
namespace {

constexpr std::chrono::seconds kLooks{3};

}  // namespace

FenceWatch::FenceWatch(RunFence fence, std::function<void(const std::string&)> says)
    : fence_(std::move(fence)), says_(std::move(says)) {
  thread_ = Thread("fence", [this] { watch(); });
}

FenceWatch::~FenceWatch() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void FenceWatch::check() const {
  if (fence_.holds()) return;
  says_("the run has gone on without this rank: it ends, and writes nothing more");
  ::kill(::getpid(), SIGKILL);
}

void FenceWatch::watch() {
  MutexLock lock(mutex_);
  while (!ended_.wait_for(lock, kLooks, [this]() REQUIRES(mutex_) { return ends_; })) {
    lock.unlock();  // the disk may be slow, or away
    check();
    lock.lock();
  }
}

}  // namespace footplate
