#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "protocol/messages/event.h"
#include "protocol/settings.h"
#include "runtime/base/clock.h"
#include "runtime/base/times.h"
#include "runtime/watch/inquiry.h"
#include "runtime/watch/messages.h"
#include "runtime/watch/policies.h"
#include "runtime/watch/status_tracker.h"

namespace footplate {

/// Rank 0: what follows where a collective hangs though its ranks live (comm.on_timeout, eval.on_timeout). An
/// operation can't be taken back; what frees the ranks is that their communicators are made anew, as after a
/// loss (World::rebuild). That waits for everybody, so it is done only once all ranks have answered, and
/// never while one is silent: it may come back, or be killed past comm.hard_limit_s. A state machine as
/// Coordinator is; control thread.
class CollectiveTimeouts {
 public:
  using Clock = SteadyClock;
  struct Parts {
    const StatusTracker& status;
    int world_size = 1;
    std::function<void(const message::ToRanks& message)> send_all;
    /// Of kind `timeout`.
    std::function<void(Warning)> warn;
    ControlTimes times;
  };

  /// What came of those before, which a new world doesn't forget: a deadline that is too short is not to
  /// rebuild for ever.
  struct Memory {
    std::int64_t step = -1;  ///< of the last rebuild for a training step
    int at_step = 0;         ///< rebuilds for that step
    int doublings = 0;       ///< of the time that the next one waits
    std::uint64_t tickets = 0;
  };

  CollectiveTimeouts(Parts parts, Memory& memory) : parts_(std::move(parts)), memory_(memory) {}

  /// The policies in force.
  void follow(const Settings& settings);

  /// A collective is past its deadline, and this is why.
  void hangs(const Inquiry::Verdict& verdict, Clock::time_point now);
  /// It has ended after all.
  void over(std::uint64_t sequence);
  void handle(int source, const message::Ready& ready);

  enum class Due { nothing, rebuild, stop };
  /// What this rank has to do now, all ranks having been told.
  Due tick(Clock::time_point now);
  Clock::time_point next_tick() const;
  bool awaiting_ranks() const { return open_ && open_->asked; }

 private:
  struct Open {
    std::uint64_t sequence = 0;
    std::int64_t step = 0;
    bool evaluation = false;
    bool stop = false;
    Clock::duration limit{};
    std::string text;
    Clock::time_point due;
    bool asked = false;
    Clock::time_point until{};  ///< asked: the answers are awaited
    std::set<int> ready;
  };
  void ask(Clock::time_point now);
  void take_back();
  void note(const Open& done);

  Parts parts_;
  Memory& memory_;
  OnTimeout on_timeout_ = OnTimeout::rebuild;
  OnTimeout eval_on_timeout_ = OnTimeout::skip;
  std::optional<Open> open_;
};

}  // namespace footplate
