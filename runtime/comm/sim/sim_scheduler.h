#pragma once

#include <sched.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/scheduler.h"

namespace footplate {

/// Runs one thread at a time, chosen by a seed among those that could, by a clock of its own: where all wait,
/// it is at once as late as the first of them waits for. The same seed gives the same run, to the letter of
/// its trace, as long as the threads differ in nothing else (no other threads, no machine's clock, no
/// sockets).
///
///   SimScheduler scheduler(seed);  // this thread, and those started from here on
///   …                              // ranks over SimWorld
///   scheduler.digest();
///
/// Where nobody can ever go on, it says what each thread waits for and aborts.
class SimScheduler final : public Scheduler {
 public:
  explicit SimScheduler(std::uint64_t seed);
  /// All threads started under it have ended. On the thread that made it.
  ~SimScheduler() override;
  SimScheduler(const SimScheduler&) = delete;
  SimScheduler& operator=(const SimScheduler&) = delete;

  /// The one that this thread runs under, or null. There is no other kind.
  static SimScheduler* current() { return static_cast<SimScheduler*>(Scheduler::current()); }

  /// Of the trace so far: each turn, and each line.
  std::uint64_t digest() const { return digest_; }
  /// The seed, and the last lines: turns so far, time in µs, thread, and what it did.
  std::string trace(std::size_t lines = kKept) const;

  time_point now() const override { return now_; }
  bool wait(const void* condition, std::unique_lock<std::mutex>& lock, time_point until) override;
  void notify_all(const void* condition) override;
  void sleep_until(time_point until) override;
  void pass() override;
  Task* add(std::string_view name) override;
  void run(Task* task, const std::function<void()>& body) override;
  void join(const Task* task) override;
  void note(std::string_view text) override;

  static constexpr std::size_t kKept = 20000;  ///< lines of the trace

 private:
  struct Line {
    std::uint64_t turn;
    time_point at;
    const Task* task;
    std::string text;
  };
  void suspend(const void* condition, time_point until);
  void hand_over();
  Task* choose();
  void wake_by_time();
  [[noreturn]] void stuck() const;

  const std::uint64_t seed_;
  std::mt19937_64 random_;
  cpu_set_t cores_{};  ///< that this thread may run on otherwise
  time_point now_;
  std::vector<std::unique_ptr<Task>>
      tasks_;  ///< in the order of their start; this and all else is whose turn it is
  Task* running_;
  std::vector<Task*> ready_;  ///< scratch
  std::uint64_t turns_ = 0;
  std::uint64_t digest_ = 0;
  std::deque<Line> lines_;
};

}  // namespace footplate
