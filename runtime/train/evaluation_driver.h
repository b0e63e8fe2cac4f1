#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "protocol/messages/event.h"
#include "protocol/result.h"
#include "runtime/train/async_evaluation.h"
#include "runtime/train/evaluated_state.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/reporter.h"
#include "runtime/train/training.h"

namespace footplate {

/// When a trainer evaluates, beside training or between steps, and what becomes of the results: lines, events
/// and the best loss so far. All ranks start, leave out and finish at the same steps. Training thread.
class EvaluationDriver {
 public:
  /// Where the parameters of a new best evaluation are.
  struct BestParameters {
    std::int64_t step = 0;
    bool beside = false;                   ///< training has gone on since; else they are those of now
    bool wanted = false;                   ///< ckpt.keep_best, as it was when the evaluation began
    const EvaluatedState* kept = nullptr;  ///< beside and wanted; null: there was no memory for them
  };
  using OnBest = std::function<void(const BestParameters& best)>;

  /// `on_best` is called on all ranks at the same step, once an evaluation that is the new best is recorded.
  EvaluationDriver(Training& training, const Reporter& reporter, OnBest on_best);

  /// Whether this rank's share of the evaluation beside training is there.
  bool share_ready() const { return beside_.ready(); }

  /// After a step. `all_ready`: of all ranks the share is there; what was started is finished first, the one
  /// that is `due` may then begin.
  void after_step(bool all_ready, bool due);

  /// eval.now; `batches`: none = eval.batches.
  Result<EvaluationResult> evaluate_now(std::optional<std::int64_t> batches);

  /// At the end of a run that has done all its steps: on everything held out, unless that was the last
  /// evaluation's choice.
  void evaluate_at_end();

  /// What was begun beside training is waited for.
  void finish();
  /// Nothing comes of it. `why`: for people.
  void give_up(const char* why);

 private:
  void start_beside();
  void evaluate_and_record(std::int64_t batches);
  Result<EvalResult> evaluate_between(std::int64_t batches);
  Result<EvalResult> explained(Result<EvalResult> result);
  /// Whether there are evaluations at all.
  bool evaluates() const;
  EvalPlan plan(std::int64_t batches) const;
  EvaluatedOn choice_of(std::int64_t batches) const;
  EvalPorts ports(std::int64_t step);
  void keep_state();
  bool note_best(std::int64_t step, const Result<EvalResult>& result);
  void conclude(const BestParameters& of, const Result<EvalResult>& result);
  BestParameters parameters_of_now() const;
  void record(std::int64_t step, const Result<EvalResult>& result) const;
  EvaluationResult describe(std::int64_t step, const EvalResult& result) const;

  Training& training_;
  const Reporter& reporter_;
  const OnBest on_best_;
  AsyncEvaluation beside_;
  std::chrono::duration<double> waited_{};  ///< by training, for what is beside it
  bool keeps_ = false;                      ///< what is beside training, in case that it is a new best
  std::unique_ptr<EvaluatedState> kept_;    ///< that
  std::optional<LocalEvaluation>
      local_;              ///< of the last evaluation, where the ranks' parts weren't put together
  bool left_out_ = false;  ///< while that one is under way, and said
};

}  // namespace footplate
