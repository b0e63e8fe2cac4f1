#pragma once

#include <array>
#include <chrono>

#include "runtime/base/progress.h"

namespace footplate {

/// Tells the control thread which phase the training thread is in, and adds up the time of each.
/// Two clock reads a change (about 50 ns). Training thread.
class PhaseTimer {
 public:
  using Seconds = std::chrono::duration<double>;

  explicit PhaseTimer(Progress& progress) : progress_(progress) {}

  void enter(Phase phase) {
    const auto now = Progress::Clock::now();
    spent_[index(phase_)] += now - since_;
    phase_ = phase;
    since_ = now;
    progress_.enter(phase);
  }

  /// Time spent in `phase` since the last reset(), the current stay not included.
  Seconds spent(Phase phase) const { return spent_[index(phase)]; }
  void reset() { spent_ = {}; }

 private:
  static constexpr std::size_t index(Phase phase) { return static_cast<std::size_t>(phase); }

  Progress& progress_;
  Phase phase_ = Phase::starting;
  Progress::Clock::time_point since_ = Progress::Clock::now();
  std::array<Progress::Clock::duration, static_cast<std::size_t>(Phase::ended) + 1> spent_{};  ///< by phase
};

}  // namespace footplate
