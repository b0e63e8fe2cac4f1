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
#include "runtime/watch/stack_inquiries.h"

namespace footplate {

/// Rank 0: the watchers that count ranks, or numbers of collectives. Every new world has new ones. Control
/// thread.
class WorldWatch {
 public:
  using Clock = SteadyClock;
  struct Parts {
    const Schema& schema;
    StatusTracker& status;
    MessageChannel& channel;
    const Ledger* ledger = nullptr;  ///< may be null
    ControlTimes times;
    std::uint64_t first_order_id = 1;
    /// Of the timeouts; outlives the world. Null: ranks can't rebuild.
    CollectiveTimeouts::Memory* timeouts = nullptr;
    std::function<std::uint64_t(Order order)> order;  ///< in the run's own name
    std::function<void(const std::string& topic, Json data)> report;
    std::function<void(const Json& message)> send_all;
  };

  /// `now`: the settings in force.
  WorldWatch(const Parts& parts, const Settings& now);
  WorldWatch(const WorldWatch&) = delete;  // the watchers know each other
  WorldWatch& operator=(const WorldWatch&) = delete;

  /// Settings as Settings::to_json has them, those that have been set.
  void follow_changed(const Json& changed) { advice_.follow(changed); }
  /// The policies in force.
  void follow(const Settings& settings);
  void handle(int source, const Json& message, Clock::time_point now);

  void ask_patterns(Clock::time_point now) { collectives_.ask_patterns(now); }
  /// One rank, or StackInquiries::kAll.
  void ask_stacks(int rank, Clock::time_point now) { stacks_.ask(rank, now); }

  /// While the ranks recover, too.
  void tick_stacks(Clock::time_point now) { stacks_.tick(now); }
  void tick(Clock::time_point now);
  /// What this rank has to do now against a collective that hangs.
  CollectiveTimeouts::Due tick_timeouts(Clock::time_point now);
  Clock::time_point next_tick() const;
  /// Whether messages are awaited.
  bool awaiting() const;

 private:
  RankBarrier rank_barrier_;
  Advice advice_;
  std::optional<CollectiveTimeouts> timeouts_;
  CollectiveWatch collectives_;
  StackInquiries stacks_;
};

}  // namespace footplate
