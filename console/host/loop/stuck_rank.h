#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>

#include "console/host/run/host_state.h"

namespace footplate::host {

/// Ends a rank 0 that says nothing for too long. Rank 0 counts how long the others are silent,
/// comm.hard_limit_s; nobody counts its own silence but this process, its child. One thread.
class StuckRank {
 public:
  /// `state` outlives it.
  explicit StuckRank(HostState& state) : state_(state) {}

  /// Every second or so. Where this process was held up itself, the silence counts from then on.
  void look();

 private:
  using Clock = std::chrono::steady_clock;

  HostState& state_;
  const pid_t rank_ = ::getppid();
  Clock::time_point last_look_{};     ///< a late one: this process was held up itself
  Clock::time_point silent_since_{};  ///< rank 0, as far as this process could hear
};

}  // namespace footplate::host
