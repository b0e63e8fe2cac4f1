#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/thread.h"
#include "runtime/comm/watchdog.h"
#include "runtime/control/control_options.h"
#include "runtime/control/control_requests.h"
#include "runtime/control/rank_recovery.h"
#include "runtime/control/rank_zero.h"
#include "runtime/control/status_board.h"
#include "runtime/orders/gate.h"
#include "runtime/orders/participant.h"

namespace footplate {

/// A rank's control thread: takes what comes from the other ranks, the console, the training thread and the
/// clock, in this order, and hands it to the part that it is for. Everything is used by this thread alone but
/// for what Control says. More than 30 methods: one for each source that it takes from, each handing on to
/// the part that does the work.
class ControlLoop {
 public:
  using Clock = SteadyClock;
  using milliseconds = std::chrono::milliseconds;

  explicit ControlLoop(ControlOptions options);
  ~ControlLoop();
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  // What Control says.
  void set_steerable(Steerable& steerable);
  void start();
  Gate& gate() { return gate_; }
  void request_stop(const char* reason, bool resumable) noexcept;
  void take(ConsoleMessage message);
  void settle(milliseconds at_most);
  void finish(const RunResult& result);
  RunStatus status() const { return board_.read(); }
  void training_ended() { training_ended_ = true; }

 private:
  /// Messages handled before the console and the clock are looked at again.
  static constexpr int kMessagesATurn = 1000;

  void loop();
  void end();
  void join();
  /// Messages before the clock: after this process was stopped for a while, what the others sent
  /// meanwhile has to count before anybody is called silent or late.
  void turn(Clock::time_point now);
  void handle_messages(Clock::time_point now, int most = kMessagesATurn);
  void handle_gate();
  void handle(int source, const message::ToRanks& message);
  void handle(int source, const message::ToRankZero& message, Clock::time_point now);
  void handle(GateEvent& event);
  void handle_requests();
  void handle_findings();
  /// What was published after handle_gate() and before this may still be queued: another look.
  void handle_settle();
  void tick_rank_zero(Clock::time_point now);
  milliseconds sleep() const;

  /// What was said in a world counts before the next one. Whether this rank goes on.
  bool catch_up(Clock::time_point now);
  /// As rank 0 starts, or once its work has come to this rank.
  void start_rank_zero(std::uint64_t first_order_id);
  void give_up(const std::string& why);
  /// Every rank: the settings that control itself acts by.
  void follow_settings();
  void report(EventData event, RankZero::WallTime time, std::uint64_t hold = 0);
  /// What went wrong here: it must not end the thread that everybody relies on.
  void complain(const std::string& what);

  ControlOptions options_;
  Gate gate_;
  Steerable* steerable_ = nullptr;
  ControlRequests requests_;  ///< any thread
  StatusBoard board_;         ///< any thread
  std::optional<Participant> participant_;
  std::optional<RankRecovery> recovery_;
  std::unique_ptr<RankZero> rank_zero_;  ///< null on the others
  RunResult result_;                     ///< written before quit_ is set, read after
  std::atomic<bool> quit_{false};
  std::atomic<bool> training_ended_{false};
  Thread thread_;
  std::optional<Watchdog> watchdog_;
};

}  // namespace footplate
