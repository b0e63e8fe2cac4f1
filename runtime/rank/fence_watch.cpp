#include "runtime/rank/fence_watch.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "run_files/lease.h"

namespace footplate {
namespace {

constexpr std::chrono::seconds kLooks{3};
constexpr std::chrono::seconds kDiskComesBack{1};

}  // namespace

FenceWatch::FenceWatch(Parts parts) : parts_(std::move(parts)) {
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
  if (!parts_.fence.holds()) end();
}

void FenceWatch::claim(const WorldMembers& world, bool may_be_cut_off) const {
  for (;;) {
    const Claim claim = parts_.fence.claim(world);
    if (claim == Claim::left_out) return end();
    if (claim == Claim::claimed || !may_be_cut_off) return;
    std::this_thread::sleep_for(kDiskComesBack);
  }
}

void FenceWatch::end() const {
  parts_.says("the run has gone on without this rank: it ends, and writes nothing more");
  ::kill(::getpid(), SIGKILL);
}

void FenceWatch::watch() {
  MutexLock lock(mutex_);
  while (!ended_.wait_for(lock, kLooks, [this]() REQUIRES(mutex_) { return ends_; })) {
    lock.unlock();  // the disk may be slow, or away
    check();
    if (leads_) renew_lease(parts_.run_directory);
    lock.lock();
  }
}

}  // namespace footplate
