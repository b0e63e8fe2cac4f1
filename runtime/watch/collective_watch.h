#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/json.h"
#include "runtime/base/clock.h"
#include "runtime/base/times.h"
#include "runtime/comm/ledger.h"
#include "runtime/watch/advice.h"
#include "runtime/watch/collective_timeouts.h"
#include "runtime/watch/inquiry.h"
#include "runtime/watch/status_tracker.h"

namespace footplate {

/// Rank 0: looks after the collectives of all ranks. Asks why one is past its deadline (a rank's watchdog
/// says that it is), compares what the ranks have called by the digests in their heartbeats, and collects
/// what comm.report() shows. A state machine as Coordinator is; control thread.
class CollectiveWatch {
 public:
  using Clock = SteadyClock;
  struct Parts {
    StatusTracker& status;
    const Ledger* ledger;  ///< rank 0's; may be null
    int world_size = 1;
    std::function<void(const Json& message)> send_all;
    /// `warn` with kind `collective`, and `comm_report` (docs/protocol.md).
    std::function<void(const std::string& topic, Json data)> report;
    ControlTimes times;
    Advice* advice = nullptr;                ///< hears of what is late, and why; may be null
    CollectiveTimeouts* timeouts = nullptr;  ///< likewise, of what hangs
  };

  explicit CollectiveWatch(Parts parts) : parts_(std::move(parts)) {}

  void handle(int source, const Json& message, Clock::time_point now);
  /// Asks all ranks for what they have counted; reported as `comm_report` once they have answered, or with
  /// those that have within times.inquiry.
  void ask_patterns(Clock::time_point now);
  void tick(Clock::time_point now);
  Clock::time_point next_tick() const;
  /// Whether answers are awaited; messages are worth looking for more often then.
  bool awaiting_answers() const { return inquiry_.has_value() || patterns_.has_value(); }

 private:
  struct Open {
    Inquiry inquiry;
    Clock::time_point until;
  };
  struct Patterns {
    std::map<int, Json> by_rank;
    Clock::time_point until;
  };

  void on_overdue(const Json& message, Clock::time_point now);
  void on_beat(int source, const Json& beat, Clock::time_point now);
  void compare_digests(Clock::time_point now);
  void inquire(std::uint64_t sequence, double limit_s, Clock::time_point now);
  void conclude(Clock::time_point now);
  void report_patterns();

  Parts parts_;
  std::optional<Open> inquiry_;
  std::optional<std::pair<std::uint64_t, double>> next_;  ///< sequence and limit: after the one that is open
  std::optional<Patterns> patterns_;
  std::uint64_t inquired_ = 0;                                        ///< all up to this one are dealt with
  std::uint64_t unfinished_ = 0;                                      ///< was reported, and hasn't ended
  std::map<int, std::pair<std::uint64_t, std::uint64_t>> unchecked_;  ///< sequence and digest, by rank
  bool different_ = false;                                            ///< said once
};

}  // namespace footplate
