#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "protocol/messages/best_evaluation.h"
#include "protocol/messages/enum_words.h"
#include "protocol/mutex.h"
#include "runtime/base/clock.h"

namespace footplate {

/// What the training thread is doing.
enum class Phase {
  starting,
  boundary,
  data,
  forward,
  backward,
  reduce,
  optimizer,
  evaluation,
  saving,
  paused,
  ending,
  ended
};

template <>
struct EnumWords<Phase> {
  static constexpr std::array kAll{
      std::pair{Phase::starting, std::string_view("starting")},
      std::pair{Phase::boundary, std::string_view("boundary")},
      std::pair{Phase::data, std::string_view("data")},
      std::pair{Phase::forward, std::string_view("forward")},
      std::pair{Phase::backward, std::string_view("backward")},
      std::pair{Phase::reduce, std::string_view("reduce")},
      std::pair{Phase::optimizer, std::string_view("optimizer")},
      std::pair{Phase::evaluation, std::string_view("evaluation")},
      std::pair{Phase::saving, std::string_view("saving")},
      std::pair{Phase::paused, std::string_view("paused")},
      std::pair{Phase::ending, std::string_view("ending")},
      std::pair{Phase::ended, std::string_view("ended")},
  };
};

/// Where this rank is: written by the training thread, read by the control thread for heartbeats
/// without disturbing it. Each field is a whole of its own; together they may be a moment apart.
class Progress {
 public:
  using Clock = SteadyClock;

  void enter(Phase phase, Clock::time_point now = Clock::now()) {
    phase_.store(phase, std::memory_order_relaxed);
    since_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }
  /// Sequentially consistent: pairs with the fence (docs/architecture.md, "One order, all ranks").
  void at_step(std::int64_t step) {
    step_.store(step, std::memory_order_seq_cst);
    if (auto* mirror = mirror_.load(std::memory_order_acquire))
      mirror->store(step, std::memory_order_relaxed);
  }
  /// From the next one on every step is also stored there (step_file.h). It outlives this object's last
  /// at_step(). Any thread.
  void mirror(std::atomic<std::int64_t>* step) { mirror_.store(step, std::memory_order_release); }

  /// Beside training, the parameters after this step are evaluated; nothing: none are.
  void evaluates(std::optional<std::int64_t> step) { begin(evaluated_, step); }
  /// The same on the training thread.
  void evaluates_now(std::optional<std::int64_t> step) { begin(evaluated_now_, step); }

  /// Beside training, a checkpoint of `step` is written; nothing: none is. Any thread.
  void saves(std::optional<std::int64_t> step) {
    written_.store(0, std::memory_order_relaxed);
    saved_.store(step.value_or(kNone), std::memory_order_relaxed);
  }
  /// This share of it is written, 0 to 1. Any thread.
  void wrote(double share) { written_.store(static_cast<float>(share), std::memory_order_relaxed); }

  /// The evaluation of the parameters after `step` is to be given up. Any thread; until one of that step
  /// begins.
  void cancel_evaluation(std::int64_t step) { cancelled_.store(step, std::memory_order_relaxed); }
  bool is_cancelled(std::int64_t step) const { return cancelled_.load(std::memory_order_relaxed) == step; }

  /// The best evaluation so far, this start's or an earlier one's; nothing: none.
  void evaluated_best(std::optional<BestEvaluation> best) {
    const MutexLock lock(mutex_);
    best_ = std::move(best);
  }
  std::optional<BestEvaluation> best_evaluation() const {
    const MutexLock lock(mutex_);
    return best_;
  }

  Phase phase() const { return phase_.load(std::memory_order_relaxed); }
  std::int64_t step() const { return step_.load(std::memory_order_seq_cst); }
  std::optional<std::int64_t> evaluated_step() const {
    const std::int64_t step = evaluated_.load(std::memory_order_relaxed);
    return step == kNone ? std::nullopt : std::optional(step);
  }
  std::optional<std::int64_t> saved_step() const {
    const std::int64_t step = saved_.load(std::memory_order_relaxed);
    return step == kNone ? std::nullopt : std::optional(step);
  }
  double written_share() const { return static_cast<double>(written_.load(std::memory_order_relaxed)); }
  /// Of which step an evaluation is under way, on the training thread or beside it.
  std::optional<std::int64_t> evaluation_under_way() const {
    const std::int64_t now = evaluated_now_.load(std::memory_order_relaxed);
    return now == kNone ? evaluated_step() : std::optional(now);
  }
  Clock::duration in_phase() const {
    return Clock::now() - Clock::time_point(Clock::duration(since_.load(std::memory_order_relaxed)));
  }

 private:
  static constexpr std::int64_t kNone = -1;

  void begin(std::atomic<std::int64_t>& evaluated, std::optional<std::int64_t> step) {
    if (step && is_cancelled(*step)) cancelled_.store(kNone, std::memory_order_relaxed);
    evaluated.store(step.value_or(kNone), std::memory_order_relaxed);
  }

  std::atomic<std::int64_t> step_{0};
  std::atomic<std::int64_t> evaluated_{kNone};
  std::atomic<std::int64_t> evaluated_now_{kNone};
  std::atomic<std::int64_t> cancelled_{kNone};
  std::atomic<std::int64_t> saved_{kNone};
  std::atomic<float> written_{0};
  std::atomic<std::atomic<std::int64_t>*> mirror_{nullptr};
  std::atomic<Phase> phase_{Phase::starting};
  std::atomic<Clock::rep> since_{Clock::now().time_since_epoch().count()};
  mutable Mutex mutex_;
  std::optional<BestEvaluation> best_ GUARDED_BY(mutex_);
};

}  // namespace footplate
