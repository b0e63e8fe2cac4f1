#pragma once

#include <fmt/format.h>

#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "protocol/mutex.h"
#include "runtime/base/condition.h"
#include "runtime/comm/sim/sim_meeting.h"
#include "runtime/comm/sim/sim_world.h"
#include "runtime/comm/wake_event.h"

namespace footplate {

/// A line of the scheduler's trace, where there is one.
template <class... Arguments>
void trace(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (Scheduler* scheduler = Scheduler::current())
    scheduler->note(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Where a thread of a rank may be overtaken by others. No mutex is locked.
inline void let_others_first() {
  if (Scheduler* scheduler = Scheduler::current()) scheduler->pass();
}

/// The ranks that are left, between two losses.
struct SimGeneration {
  SimGeneration(std::uint32_t the_number, std::vector<int> the_origins)
      : number(the_number), origins(std::move(the_origins)), meeting(static_cast<int>(origins.size())) {}

  int rank_of(int origin) const;

  const std::uint32_t number;
  const std::vector<int> origins;  ///< by rank
  SimMeeting meeting;
};

/// What ends the sleep of a rank's control thread: a WakeEvent, or under a scheduler a condition.
class SimAlarm {
 public:
  void ring();
  /// Forgets the rings so far. Under a scheduler `fd` is not looked at.
  void sleep(std::chrono::nanoseconds at_most, int fd);

 private:
  WakeEvent event_;
  Mutex mutex_;
  Condition rung_;
  bool is_rung_ GUARDED_BY(mutex_) = false;
};

/// What all parts of one simulated world share. Any thread. Ranks by their numbers at the start.
class SimWorld::State {
 public:
  State(int world_size, Options options);

  const Options& options() const { return options_; }
  int world_size() const { return static_cast<int>(inboxes_.size()); }

  // --- messages ---

  struct Letter {
    Clock::time_point due;
    std::uint32_t generation = 0;
    Message message;  ///< its source by the numbers of that generation
  };
  struct Inbox {
    Mutex mutex;
    std::vector<std::deque<Letter>> from GUARDED_BY(mutex);  ///< by source, each in the order sent
    Clock::time_point paused_until GUARDED_BY(mutex){};
    SimAlarm alarm;
  };
  Inbox& inbox(int rank) { return *inboxes_[static_cast<std::size_t>(rank)]; }
  void deliver(const SimGeneration& generation, int from, int to, std::vector<std::uint8_t> bytes,
               std::chrono::microseconds delay);
  void hold(int rank);

  // --- who is left ---

  std::shared_ptr<SimGeneration> generation() const;
  void kill(int rank);
  /// Where this is the moment for it by the options.
  void die_if_due(int rank, std::uint64_t SimOptions::Death::*when, std::uint64_t number);
  bool is_dead(int rank) const;
  bool is_broken(int rank) const;
  /// Waits for everybody else who is left. Null: `rank` is dead.
  std::shared_ptr<SimGeneration> rebuild(int rank);

 private:
  void revoke(const char* why) REQUIRES(mutex_);
  void renew_if_all() REQUIRES(mutex_);

  const Options options_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
  mutable Mutex mutex_;
  Condition changed_;
  std::shared_ptr<SimGeneration> generation_ GUARDED_BY(mutex_);
  std::set<int> dead_ GUARDED_BY(mutex_), broken_ GUARDED_BY(mutex_), rebuilding_ GUARDED_BY(mutex_);
};

}  // namespace footplate
