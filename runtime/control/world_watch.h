#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/comm/ledger.h"
#include "runtime/comm/message_channel.h"
#include "runtime/watch/advice.h"
#include "runtime/watch/collective_timeouts.h"
#include "runtime/watch/collective_watch.h"
#include "runtime/watch/rank_barrier.h"
#include "runtime/watch/rank_inquiries.h"
#include "runtime/watch/report.h"

namespace footplate {

/// As if all of them had been set.
SettingsUpdate all_settings(const Settings& settings);

/// Rank 0: the watchers that count ranks, or numbers of collectives. Every new world has new ones. Control
/// thread.
class WorldWatch {
 public:
  using Clock = SteadyClock;
  struct Parts {
    StatusTracker& status;
    MessageChannel& channel;
    const Ledger* ledger = nullptr;  ///< may be null
    ControlTimes times;
    Advice& advice;  ///< outlives the world; its owner tells it of settings
    /// Of the timeouts; outlives the world. Null: ranks can't rebuild.
    CollectiveTimeouts::Memory* timeouts = nullptr;
    std::function<void(Report report)> report;
    std::function<void(const message::ToRanks& message)> send_all;
  };

  /// `now`: the settings in force.
  WorldWatch(const Parts& parts, const Settings& now);
  WorldWatch(const WorldWatch&) = delete;  // the watchers know each other
  WorldWatch& operator=(const WorldWatch&) = delete;

  /// The policies in force.
  void follow(const Settings& settings);
  void handle(int source, const message::ToRankZero& message, Clock::time_point now);

  /// A question of the console's; reported as RanksAnswer. Error (usage): there is none of this name.
  Result<void> ask(const AskRanks& asked, Clock::time_point now);

  /// While the ranks recover, too.
  void tick_inquiries(Clock::time_point now) { inquiries_.tick(now); }
  void tick(Clock::time_point now);
  /// What this rank has to do now against a collective that hangs.
  CollectiveTimeouts::Due tick_timeouts(Clock::time_point now);
  Clock::time_point next_tick() const;
  /// Whether messages are awaited.
  bool awaiting() const;

 private:
  void answered(const RankQuery& query, const RankAnswers& heard, Clock::time_point now);

  StatusTracker& status_;
  const std::function<void(Report report)> report_;
  RankBarrier rank_barrier_;
  Advice& advice_;
  std::optional<CollectiveTimeouts> timeouts_;
  CollectiveWatch collectives_;
  RankInquiries inquiries_;
};

}  // namespace footplate
