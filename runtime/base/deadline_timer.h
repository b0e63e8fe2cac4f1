#pragma once

#include <chrono>
#include <functional>
#include <mutex>

#include "runtime/base/condition.h"
#include "runtime/base/thread.h"

namespace footplate {

/// Runs something on a thread of its own unless it is destroyed in time: a bound on what may never return.
class Fuse {
 public:
  Fuse(std::chrono::milliseconds after, std::function<void()> burn)
      : thread_("fuse", [this, after, burn = std::move(burn)] {
          std::unique_lock lock(mutex_);
          if (!changed_.wait_for(lock, after, [this] { return out_; })) burn();
        }) {}
  ~Fuse() {
    {
      std::lock_guard lock(mutex_);
      out_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Fuse(const Fuse&) = delete;
  Fuse& operator=(const Fuse&) = delete;

 private:
  std::mutex mutex_;
  Condition changed_;
  bool out_ = false;
  Thread thread_;  // last: it uses the members above
};

}  // namespace footplate
