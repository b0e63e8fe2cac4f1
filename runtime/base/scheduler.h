#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string_view>

namespace footplate {

/// Decides which of its threads goes on, and what time it is, in place of the operating system: for tests
/// (comm/sim/scheduler.h). Clock, Condition, Thread and the sleeps of this folder ask it where there is one.
///
/// One thread runs at a time, and another may only where this one waits, sleeps, passes or ends. No thread
/// does that with a mutex locked, except the one it gives to wait(): an ordinary mutex is never contended.
class Scheduler {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  struct Task;  ///< a thread

  /// The one that this thread runs under; null in production. Threads have that of who starts them.
  static Scheduler* current() { return current_; }

  virtual ~Scheduler() = default;

  virtual time_point now() const = 0;
  /// As a condition variable at that address. Whether it was notified; if not, `until` has come.
  virtual bool wait(const void* condition, std::unique_lock<std::mutex>& lock, time_point until) = 0;
  virtual void notify_all(const void* condition) = 0;
  virtual void sleep_until(time_point until) = 0;
  /// Another thread may go first here.
  virtual void pass() = 0;

  /// A thread that is about to start.
  virtual Task* add(std::string_view name) = 0;
  /// On the thread that was added: its whole life.
  virtual void run(Task* task, const std::function<void()>& body) = 0;
  virtual void join(const Task* task) = 0;

  /// A line of the trace.
  virtual void note(std::string_view text) = 0;

 protected:
  static void set_current(Scheduler* scheduler) { current_ = scheduler; }

 private:
  static inline constinit thread_local Scheduler* current_ = nullptr;
};

}  // namespace footplate
