#pragma once

#include <array>
#include <chrono>
#include <vector>

#include "runtime/base/progress.h"

namespace footplate {

/// A stay of the training thread in a phase.
struct PhaseStay {
  Phase phase = Phase::starting;
  Progress::Clock::time_point since{}, until{};
};

/// Tells the control thread which phase the training thread is in, and adds up the time of each.
/// Two clock reads a change (about 50 ns). Training thread.
class PhaseTimer {
 public:
  using Seconds = std::chrono::duration<double>;

  explicit PhaseTimer(Progress& progress) : progress_(progress) {}

  void enter(Phase phase) {
    const auto now = Progress::Clock::now();
    spent_[index(phase_)] += now - since_;
    if (stays_ != nullptr) stays_->push_back({phase_, since_, now});
    phase_ = phase;
    since_ = now;
    progress_.enter(phase);
  }

  /// Time spent in `phase` since the last reset(), the current stay not included.
  Seconds spent(Phase phase) const { return spent_[index(phase)]; }
  void reset() { spent_ = {}; }

  /// From here on `stays` gets each stay that ends; null: no more. It lives until then.
  void record(std::vector<PhaseStay>* stays) { stays_ = stays; }

 private:
  static constexpr std::size_t index(Phase phase) { return static_cast<std::size_t>(phase); }

  Progress& progress_;
  Phase phase_ = Phase::starting;
  Progress::Clock::time_point since_ = Progress::Clock::now();
  std::array<Progress::Clock::duration, static_cast<std::size_t>(Phase::ended) + 1> spent_{};  ///< by phase
  std::vector<PhaseStay>* stays_ = nullptr;
};

}  // namespace footplate
