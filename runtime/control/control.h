#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "protocol/messages/link_messages.h"
#include "runtime/control/control_options.h"
#include "runtime/orders/steerable.h"
#include "runtime/orders/step_gate.h"

namespace footplate {

class ControlLoop;

/// A rank's part of control, and on rank 0 the coordinator and the link to the console: one thread
/// that sleeps until a message, the console or the training thread wakes it.
///
///   Control control(options);
///   Trainer trainer(..., control.gate());
///   control.set_steerable(trainer);
///   control.start();
///   trainer.run();                     // while (gate.enter(step) == train) ...
///   control.finish(result);            // all ranks; rank 0's `result` goes to the console
class Control {
 public:
  explicit Control(ControlOptions options);
  ~Control();  ///< ends the thread and the console, if finish() was not called
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// Before start().
  void set_steerable(Steerable& steerable);
  void start();

  /// For the training thread.
  StepGate& gate();

  /// Ends the run at the next step as if somebody had ordered run.stop{save=true}, on whichever rank
  /// it is called. Any thread; async-signal-safe. `reason` has to be a literal; it becomes
  /// Ending::reason. A second call changes nothing.
  void request_stop(const char* reason, bool resumable) noexcept;

  /// Rank 0, any thread, after start(): as from the console, from whoever isn't one.
  void take(ConsoleMessage message);

  /// Training thread, after start(): returns once everything published before has been recorded, or after
  /// `at_most` where the control thread is held up.
  void settle(std::chrono::milliseconds at_most);

  /// Once the training thread is done for whatever reason: tells the console how the run ended
  /// (rank 0), waits at most times.console_reads_end for it to have read that, and ends the thread. After it
  /// nothing uses the channel.
  void finish(const RunResult& result);

  /// Rank 0, any thread: what `status` answers now.
  RunStatus status() const;

  /// How long the training thread has been held at fences so far, and how often.
  struct Held {
    std::chrono::nanoseconds total{0};
    std::uint64_t times = 0;
  };
  Held held() const;

  /// Training thread, when run() has returned: a rank that is lost from now on is nobody's business here.
  void training_ended();

 private:
  std::unique_ptr<ControlLoop> loop_;
};

}  // namespace footplate
