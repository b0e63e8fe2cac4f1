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

/// How long each phase has taken.
class PhaseTimes {
 public:
  using Seconds = std::chrono::duration<double>;

  Seconds& operator[](Phase phase) { return spent_[static_cast<std::size_t>(phase)]; }
  Seconds of(Phase phase) const { return spent_[static_cast<std::size_t>(phase)]; }

  /// What a step consists of: evaluations, saves and pauses in between are none of it.
  Seconds steps() const { return of(Phase::data) + computing() + of(Phase::reduce); }
  Seconds computing() const { return of(Phase::forward) + of(Phase::backward) + of(Phase::optimizer); }

  /// What has been added since it was `before`.
  PhaseTimes since(const PhaseTimes& before) const {
    PhaseTimes times;
    for (std::size_t i = 0; i < spent_.size(); ++i) times.spent_[i] = spent_[i] - before.spent_[i];
    return times;
  }

 private:
  std::array<Seconds, static_cast<std::size_t>(Phase::ended) + 1> spent_{};  ///< by phase
};

/// Tells the control thread which phase the training thread is in, and adds up the time of each. One clock
/// read a change (about 25 ns). Training thread.
class PhaseTimer {
 public:
  explicit PhaseTimer(Progress& progress) : progress_(progress) {}

  void enter(Phase phase) {
    const auto now = Progress::Clock::now();
    times_[phase_] += now - since_;
    if (stays_ != nullptr) stays_->push_back({phase_, since_, now});
    phase_ = phase;
    since_ = now;
    progress_.enter(phase, now);
  }

  /// Since this began, the current stay not included.
  const PhaseTimes& times() const { return times_; }

  /// From here on `stays` gets each stay that ends; null: no more. It lives until then.
  void record(std::vector<PhaseStay>* stays) { stays_ = stays; }

 private:
  Progress& progress_;
  Phase phase_ = Phase::starting;
  Progress::Clock::time_point since_ = Progress::Clock::now();
  PhaseTimes times_;
  std::vector<PhaseStay>* stays_ = nullptr;
};

}  // namespace footplate
