#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/progress.h"
#include "runtime/device/time_marks.h"

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

  PhaseTimes& operator+=(const PhaseTimes& more) {
    for (std::size_t i = 0; i < spent_.size(); ++i) spent_[i] += more.spent_[i];
    return *this;
  }
  /// In these parts, steps that took so long in all.
  PhaseTimes of_steps(Seconds all) const {
    PhaseTimes times;
    for (std::size_t i = 0; i < spent_.size(); ++i) times.spent_[i] = spent_[i] * (all / steps());
    return times;
  }
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
/// read a change (about 25 ns). Training thread, or the one that it waits for in backward.
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
    if (marks_ != nullptr && marks_->mark()) marked_.push_back(phase);
  }

  /// From now on changes are marked in the device's own time, too; null: they aren't.
  void mark_with(TimeMarks* marks) {
    if (marks_ != nullptr) static_cast<void>(take_marked());
    marks_ = marks;
  }
  /// The times of the phases that have been marked, but the last one's; waits for that to begin, and marks no
  /// more. Nothing: none were, or the device has failed.
  std::optional<PhaseTimes> take_marked() {
    TimeMarks* const marks = std::exchange(marks_, nullptr);
    const std::vector<Phase> phases = std::exchange(marked_, {});
    if (marks == nullptr) return std::nullopt;
    const std::vector<double> seconds = marks->take_seconds();
    if (seconds.empty() || seconds.size() + 1 != phases.size()) return std::nullopt;
    PhaseTimes times;
    for (std::size_t i = 0; i < seconds.size(); ++i) times[phases[i]] += PhaseTimes::Seconds(seconds[i]);
    return times;
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
  TimeMarks* marks_ = nullptr;
  std::vector<Phase> marked_;  ///< each from its mark to the next
};

}  // namespace footplate
