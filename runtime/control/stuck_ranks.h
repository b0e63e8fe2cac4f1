#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "protocol/settings.h"
#include "runtime/base/clock.h"
#include "runtime/comm/message_channel.h"
#include "runtime/watch/status_tracker.h"

namespace footplate {

/// Rank 0: has a rank killed that holds up the others for longer than comm.hard_limit_s, or that a person
/// drops. The others then recover as after any loss. Control thread.
class StuckRanks {
 public:
  using Clock = SteadyClock;
  struct Parts {
    StatusTracker& status;
    const MessageChannel& channel;
    std::function<void(const message::ToRanks& message)> send_all;
    std::function<void(RankChange change)> report;
    /// Before this rank has itself killed; may be empty.
    std::function<void()> before_exit;
  };

  explicit StuckRanks(Parts parts) : parts_(std::move(parts)) {}

  void follow(const Settings& settings);
  /// While training runs.
  void tick(Clock::time_point now);
  /// While a recovery has waited `waited` for the training threads of `awaited`.
  void tick_recovery(const std::vector<int>& awaited, Clock::duration waited, Clock::time_point now);
  /// Who was told to die and lives may not have heard of it: messages are lost with a world.
  void change_world() { killed_.clear(); }
  /// comm.drop(); `user`: who asked for it.
  void drop(int rank, const std::string& user, Clock::time_point now);

 private:
  void kill(const StatusTracker::Stuck& stuck, const std::string& why);
  std::string past_limit() const;

  Parts parts_;
  std::chrono::duration<double> limit_{0};        ///< none: nobody is killed
  std::set<std::pair<std::string, int>> killed_;  ///< processes: host, id
};

}  // namespace footplate
