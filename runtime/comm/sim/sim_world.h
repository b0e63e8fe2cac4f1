#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/progress.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/ledger.h"
#include "runtime/comm/message_channel.h"
#include "runtime/comm/world.h"

namespace footplate {

/// How a simulated world misbehaves, by a seed.
struct SimOptions {
  using Clock = SteadyClock;
  std::uint64_t seed = 1;
  std::chrono::microseconds max_delay{0};               ///< a message takes a random time up to this
  std::chrono::microseconds max_lateness{0};            ///< a rank is late by up to this at each collective
  std::function<Clock::time_point()> now = Clock::now;  ///< for messages: a clock of its own where a test has
                                                        ///< all ranks on one thread
  /// `rank` dies as it comes to its so-manieth collective, or is about to send its so-manieth message; 1 is
  /// the first, 0: not by that.
  struct Death {
    int rank = 0;
    std::uint64_t collective = 0;
    std::uint64_t message = 0;
  };
  std::vector<Death> deaths{};
};

/// Ranks as threads of one process: what they talk by, what they reduce by, and how they die. For tests:
/// under a SimScheduler (scheduler.h) one seed is one run; without one the threads run freely, in real time.
/// Between two ranks messages keep their order as in MPI; sums are formed in rank order; ranks that meet with
/// different operations get an error that says which. Outlives what it hands out. Ranks are given by their
/// numbers at the start.
class SimWorld {
 public:
  using Clock = SimOptions::Clock;
  using Options = SimOptions;

  explicit SimWorld(int world_size, Options options = {});
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  int world_size() const;  ///< at the start

  // Once for each rank; any thread.

  std::unique_ptr<MessageChannel> channel(int rank);
  /// `ledger` and `progress` outlive it.
  std::unique_ptr<Communicator> communicator(int rank, Ledger& ledger, const Progress& progress);
  /// `channel` is that rank's, and outlives it.
  std::unique_ptr<World> world(int rank, MessageChannel& channel);

  /// As if `rank` were stopped until `until`: its channel hands nothing out and its threads, where they
  /// call hold(), sleep. Any thread.
  void pause(int rank, Clock::time_point until);
  /// Sleeps while `rank` is paused; at once if it isn't.
  void hold(int rank);

  /// `rank` dies: nothing of it arrives any more, its own operations and its rebuild() fail, and the others'
  /// world is broken. Any thread.
  void kill(int rank);
  bool is_dead(int rank) const;

  class State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace footplate
