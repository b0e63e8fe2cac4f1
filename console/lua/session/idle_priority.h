#pragma once

#include <time.h>

#include <chrono>

namespace footplate::lua {

/// Processor time that the chunks of a session may use at normal priority: `burst`, which comes back at a
/// twentieth of the time that passes. What a chunk uses beyond is at idle priority, so that a script that
/// computes can't slow training. A chunk lowers its own priority: the console would have to look for its
/// thread in /proc, and Linux lets who reaps a process whose threads were looked up there spin until they
/// are gone, which takes long at idle priority (700 ms of rank 0's core were seen).
class Allowance {
 public:
  using Seconds = std::chrono::duration<double>;

  explicit Allowance(Seconds burst);

  /// Holds the calling thread to it as long as this lives. Idle priority is for good, since only the
  /// privileged can take it back: each chunk needs a thread of its own. At most one at a time in a process.
  class Watch {
   public:
    explicit Watch(Allowance& allowance);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Allowance& allowance_;
    bool armed_ = false;  ///< false where the system gives no timer: the chunk keeps its priority
  };

 private:
  friend void on_allowance_used(int signal);

  void begin();   ///< the calling thread's processor time counts from here
  void settle();  ///< takes off what was used since, adds what came back
  void look();    ///< settles; what is left goes to the timer, or the priority falls

  Seconds burst_;
  Seconds left_;
  Seconds cpu_{};    ///< of the thread, at the last settling
  Seconds wall_{};   ///< then
  timer_t timer_{};  ///< of the thread's processor time
};

}  // namespace footplate::lua
