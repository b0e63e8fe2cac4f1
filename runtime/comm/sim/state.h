#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/comm/sim/meeting.h"
#include "runtime/comm/sim/world.h"
#include "runtime/comm/wake_event.h"

namespace footplate {

/// The ranks that are left, between two losses.
struct SimGeneration {
  SimGeneration(std::uint32_t the_number, std::vector<int> the_origins)
      : number(the_number), origins(std::move(the_origins)), meeting(static_cast<int>(origins.size())) {}

  int rank_of(int origin) const;

  const std::uint32_t number;
  const std::vector<int> origins;  ///< by rank
  SimMeeting meeting;
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
    std::mutex mutex;
    std::vector<std::deque<Letter>> from;  ///< by source, each in the order sent
    Clock::time_point paused_until{};
    WakeEvent wake;
  };
  Inbox& inbox(int rank) { return *inboxes_[static_cast<std::size_t>(rank)]; }
  void deliver(const SimGeneration& generation, int from, int to, Json body, std::chrono::microseconds delay);
  void hold(int rank);

  // --- who is left ---

  std::shared_ptr<SimGeneration> generation() const;
  void kill(int rank);
  bool is_dead(int rank) const;
  bool is_broken(int rank) const;
  /// Waits for everybody else who is left. Null: `rank` is dead.
  std::shared_ptr<SimGeneration> rebuild(int rank);

 private:
  void revoke(const char* why);  // with mutex_ held
  void renew_if_all();           // likewise

  const Options options_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::shared_ptr<SimGeneration> generation_;
  std::set<int> dead_, broken_, rebuilding_;
};

}  // namespace footplate
