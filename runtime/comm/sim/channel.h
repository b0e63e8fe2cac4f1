#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "runtime/comm/message_channel.h"
#include "runtime/comm/wake_event.h"

namespace footplate {

/// Ranks as threads of one process: the channels between them, with seeded delays and pauses. For
/// tests; the order of messages between two ranks holds as in MPI. Outlives its channels.
class SimWorld {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    std::uint64_t seed = 1;
    std::chrono::microseconds max_delay{0};               ///< each message takes a random time up to this
    std::function<Clock::time_point()> now = Clock::now;  ///< a clock of its own for tests on one thread
  };

  SimWorld(int world_size, Options options);
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  int world_size() const { return static_cast<int>(inboxes_.size()); }
  std::unique_ptr<MessageChannel> channel(int rank);

  /// As if `rank` were stopped until `until`: its channel hands nothing out and its threads, where they
  /// call hold(), sleep. Any thread.
  void pause(int rank, Clock::time_point until);
  /// Sleeps while `rank` is paused; at once if it isn't.
  void hold(int rank);

 private:
  friend class SimChannel;
  struct Letter {
    Clock::time_point due;
    Message message;
  };
  struct Inbox {
    std::mutex mutex;
    std::vector<std::deque<Letter>> from;  ///< by source, each in the order sent
    Clock::time_point paused_until{};
    WakeEvent wake;
  };

  void deliver(int from, int to, Json body, std::chrono::microseconds delay);

  Options options_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
};

}  // namespace footplate
