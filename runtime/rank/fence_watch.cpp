#include "runtime/rank/fence_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
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
  for (bool is_told = false;; is_told = true) {
    const Claim claim = parts_.fence.claim(world);
    if (claim == Claim::left_out) return end();
    if (claim == Claim::claimed || !may_be_cut_off) return;
    if (!is_told) tell_of_disk();
    std::this_thread::sleep_for(kDiskComesBack);
  }
}

/// By itself: the control thread, which events come from, waits here, and the log is on that disk.
void FenceWatch::tell_of_disk() const {
  const std::string text = fmt::format(
      "a host was lost, and the term that says who goes on can't be written into {}; training goes on "
      "once it can: look whether that disk is there, and has space",
      parts_.run_directory.string());
  parts_.says(text);
  std::fprintf(stderr, "footplate: %s\n", text.c_str());
}

void FenceWatch::end() const {
  parts_.says("the run has gone on without this rank: it ends, and writes nothing more");
  if (parts_.fence.is_taken_over()) parts_.orphan();  // its mpirun has nobody left that goes on
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
