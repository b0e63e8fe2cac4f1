#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/console_link/console_link.h"
#include "runtime/control/control_options.h"
#include "runtime/control/status_board.h"
#include "runtime/orders/coordinator.h"
#include "runtime/orders/gate.h"
#include "runtime/orders/participant.h"
#include "runtime/watch/report.h"
#include "runtime/watch/status_tracker.h"

namespace footplate {

/// The values, at the run's start, of the settings that apply at the next one. A process that has joined was
/// told them.
Json kept_at_start(const ControlOptions& options);

/// Rank 0: what the console hears: who it talks to (hello), reports and events, and the status, as often as
/// somebody looks. Control thread.
class ConsoleFeed {
 public:
  using Clock = SteadyClock;
  using WallTime = std::chrono::system_clock::time_point;
  struct Parts {
    const ControlOptions& options;
    Gate& gate;
    Participant& participant;
    const StatusTracker& status;
    const Coordinator& coordinator;
    StatusBoard& board;
    std::function<void(ConsoleMessage message)> on_message;  ///< from the console
    std::function<void(Warning warning)> warn;
  };

  explicit ConsoleFeed(Parts parts) : parts_(std::move(parts)) {}

  /// Starts the console, where the run has one, with the next pump().
  void start();
  void pump(Clock::time_point now);
  Clock::time_point next_pump() const;
  /// To poll for reading; -1: nothing to.
  int fd() const { return link_ ? link_->fd() : -1; }
  /// How the run ended, as the last line.
  void finish(const RunResult& result);

  /// `hold`: training waits for its release.
  void tell(Report report, WallTime time, std::uint64_t hold);

  /// The console has somebody who looks, or no longer.
  void follow(bool on);
  /// The console wants a status now: with the heartbeat that this sends.
  void ask(Clock::time_point now);
  /// Rank 0's own heartbeat. Where nobody looks, a status now and then is enough: making and reading one
  /// costs more than all else that happens while the run is left alone.
  void on_own_beat(const message::Beat& beat);
  void renew_status();
  /// What the status tells of train.steps.
  void set_steps(std::int64_t steps) { steps_ = steps; }

 private:
  RankZeroHello hello();
  RunIdentity identity() const;
  std::vector<OrderReport> recent_reports() const;
  void tell_event(EventData event, WallTime time, std::uint64_t hold);
  void keep_computed(const SettingsUpdate& update);
  Settings settings_now() const;
  void keep_for_next_console(const Event& event);

  Parts parts_;
  std::optional<ConsoleLink> link_;
  /// The latest of computed settings, by what the console was told: the gate has those of the start.
  std::map<std::string, SettingNow> computed_;
  std::vector<Event> untold_;  ///< of ranks, that came while there was no console
  std::int64_t steps_ = 0;
  RunState state_ = RunState::starting;  ///< in the last status
  bool followed_ = false;
  bool asked_ = false;
  int beats_untold_ = 0;
};

}  // namespace footplate
