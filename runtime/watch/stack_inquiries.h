#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "protocol/json.h"
#include "runtime/base/clock.h"
#include "runtime/base/times.h"
#include "runtime/watch/status_tracker.h"

namespace footplate {

/// Rank 0: asks ranks where their threads are (stacks.h), for ranks.stacks(). A state machine as Coordinator
/// is; control thread.
class StackInquiries {
 public:
  using Clock = SteadyClock;
  struct Parts {
    const StatusTracker& status;
    int world_size = 1;
    std::function<void(int to, const Json& message)> send;
    /// `stacks` (docs/protocol.md).
    std::function<void(const std::string& topic, Json data)> report;
    ControlTimes times;
  };

  /// Instead of a rank: all of them.
  static constexpr int kAll = -1;

  explicit StackInquiries(Parts parts) : parts_(std::move(parts)) {}

  /// Asks this rank, or kAll; one that doesn't exist is nobody. Reported once those asked have answered, or
  /// after times.inquiry with how long the others have been silent. The same again meanwhile joins the first.
  void ask(int rank, Clock::time_point now);
  void handle(int source, const Json& message, Clock::time_point now);
  void tick(Clock::time_point now);
  Clock::time_point next_tick() const;
  /// Whether answers are awaited; messages are worth looking for more often then.
  bool awaiting_answers() const { return !open_.empty(); }

 private:
  struct Open {
    std::set<int> awaited;
    std::map<int, Json> threads;  ///< by rank
    Clock::time_point until;
  };

  void report(int asked, const Open& open, Clock::time_point now) const;
  Json silent(int rank, Clock::time_point now) const;
  void report_finished(Clock::time_point now);

  Parts parts_;
  std::map<int, Open> open_;  ///< by whom was asked
  /// Have been asked and have not answered: one that is stopped isn't asked again, or it would have to take
  /// its stacks many times as soon as it goes on.
  std::set<int> owing_;
};

}  // namespace footplate
