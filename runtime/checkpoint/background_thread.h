#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace footplate {

/// One piece of work at a time, on a thread of its own that gives way to training. Training thread, except
/// where marked.
class BackgroundThread {
 public:
  BackgroundThread() = default;
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;
  ~BackgroundThread() { wait(); }

  /// Waits for the work before, and begins; where the system has no thread for it, does it here. `work`
  /// doesn't throw.
  void start(std::function<void()> work);
  /// Returns once there is none under way, and what it wrote can be read.
  void wait();
  bool is_busy() const { return busy_.load(std::memory_order_acquire); }  ///< any thread

 private:
  std::atomic<bool> busy_{false};
  std::thread thread_;
};

}  // namespace footplate
