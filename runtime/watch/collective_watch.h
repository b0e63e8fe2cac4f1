#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/messages/event.h"
#include "runtime/base/clock.h"
#include "runtime/comm/ledger.h"
#include "runtime/watch/advice.h"
#include "runtime/watch/collective_timeouts.h"
#include "runtime/watch/inquiry.h"
#include "runtime/watch/messages.h"
#include "runtime/watch/status_tracker.h"
#include "runtime/watch/unchecked_digests.h"

namespace footplate {

/// Rank 0: looks after the collectives of all ranks. Asks why one is past its deadline (a rank's watchdog
/// says that it is), and compares what the ranks have called by the digests in their heartbeats. A state
/// machine as Coordinator is; control thread.
class CollectiveWatch {
 public:
  using Clock = SteadyClock;
  struct Parts {
    StatusTracker& status;
    const Ledger* ledger;  ///< rank 0's; may be null
    int world_size = 1;
    /// Asks all ranks for their ledgers; answered() comes of it.
    std::function<void(Clock::time_point now)> ask;
    /// Of kind `collective`.
    std::function<void(Warning)> warn;
    Advice* advice = nullptr;                ///< hears of what is late, and why; may be null
    CollectiveTimeouts* timeouts = nullptr;  ///< likewise, of what hangs
    /// Has all ranks write their ledgers down, since one hangs; may be empty.
    std::function<void(Clock::time_point now)> record = {};
  };

  explicit CollectiveWatch(Parts parts) : parts_(std::move(parts)), unchecked_(parts_.world_size) {}

  void handle(int source, const message::Beat& beat, Clock::time_point now);
  void handle(int source, const message::Overdue& overdue, Clock::time_point now);
  /// The ledgers of the ranks that have answered, by rank; who isn't among them hasn't in time.
  void answered(std::map<int, LedgerAnswer>&& ledgers, Clock::time_point now);

 private:
  /// Each rank's watchdog says so by itself: the first one counts.
  void is_over(const message::Overdue& overdue);
  void compare_digests(Clock::time_point now);
  void inquire(Inquiry::Question question, Clock::time_point now);
  void tell(const Inquiry::Verdict& verdict);

  Parts parts_;
  std::optional<Inquiry> inquiry_;
  std::optional<Inquiry::Question> next_;  ///< after the one that is open
  std::uint64_t inquired_ = 0;             ///< all up to this one are dealt with
  std::uint64_t unfinished_ = 0;           ///< was reported, and hasn't ended
  UncheckedDigests unchecked_;
  bool different_ = false;  ///< said once
};

}  // namespace footplate
