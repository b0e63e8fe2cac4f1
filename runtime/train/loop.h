#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/state/state_sweep.h"
#include "runtime/train/checkpoint_driver.h"
#include "runtime/train/comm_metrics.h"
#include "runtime/train/evaluation_driver.h"
#include "runtime/train/profile_driver.h"
#include "runtime/train/reporter.h"
#include "runtime/train/timetable.h"
#include "runtime/train/train_step.h"
#include "runtime/train/training.h"

namespace footplate {

/// The trainer behind its door, everything that sees LibTorch: the loop over steps, and what orders make of
/// it in between. Training thread, except where marked.
class Trainer::Loop {
 public:
  Loop(TrainerOptions options, std::unique_ptr<HostedTask> task);

  Result<Ending> run(StepGate& gate);
  Result<void> load(const std::string& checkpoint);
  Result<SaveResult> save(const std::string& tag) { return checkpoints_.save(tag); }
  Result<SaveResult> save_by_order(const std::string& tag) { return checkpoints_.save_by_order(tag); }
  std::vector<Moved> settings_changed(const Settings& now, std::int64_t step);

  /// Steerable::stand.
  void stand(bool whole) { checkpoints_.stand(/*may_go_back=*/!whole || training_.is_sharded()); }
  /// Steerable::held_share.
  HeldShare held_share() const {
    if (had_ == nullptr && step_ == nullptr) return {};
    const OptimizerShare& optimizer = had_ ? *had_ : step_->optimizer();
    return {optimizer.share(), optimizer.copied_share(), optimizer.shares(), training_.sharding().stage > 0};
  }
  /// optim.shard and ckpt.redundancy, within Steerable::renew(). Errors as there.
  Result<void> share_as(const Sharding& wanted);
  /// In a world of other ranks (Steerable::rejoin).
  Result<void> rejoin(const Rejoin& now);
  /// Steerable::take_up.
  Result<void> take_up(const Rejoin& now);

  /// guard.repair: all take the state of `source`.
  Result<StateRepaired> repair(int source);

  /// eval.now; `batches`: none = eval.batches.
  Result<EvaluationResult> evaluate_now(std::optional<std::int64_t> batches) {
    return evaluation_.evaluate_now(batches);
  }

  /// profile.now.
  Result<CallResult> profile(std::int64_t steps) {
    return profile_.begin(steps).map([](MeasurementBegun begun) { return CallResult(begun); });
  }

  /// Names of the actions that the task declares.
  const std::vector<std::string>& task_actions() const { return task_actions_; }
  Result<CallResult> call_task(const Call& call, std::int64_t step);

  Training& training() { return training_; }
  const Training& training() const { return training_; }  ///< any thread, as far as its members say so
  Result<void> finish_saves();
  std::string last_checkpoint() const { return checkpoints_.last(); }
  Result<SaveResult> tag(const std::string& ref, const std::string& tag) {
    return checkpoints_.tag(ref, tag);
  }
  Result<SaveResult> remove(const std::string& tag) { return checkpoints_.remove(tag); }
  bool failed_together() const { return step_ != nullptr && step_->failed_together(); }
  std::int64_t skipped_in_row() const { return skipped_in_row_; }

 private:
  /// Error (failed): a change of what ranks share, and the way back, have failed for want of memory.
  Result<void> has_step() const;
  Result<bool> train_step();
  void after_step();
  Ending end();
  tl::unexpected<Error> failed(const Error& error);
  void save_and_evaluate(const Ending& ending);
  void configure();
  void configure_communicators(const StepSettings& now);
  void tell_refusal();
  Result<void> level(int source, const StateTable& state);
  Result<void> take_evaluations(int source);
  Result<void> share(const Rejoin& now);
  Result<void> go_back(const Rejoin& now);
  void compare_states();

  Training training_;
  const std::vector<std::string> task_actions_ = training_.task->actions();
  Timetable timetable_;
  bool saves_after_step_ = false;    ///< the step that was just done
  bool rejoins_ = false;             ///< from rejoin() to the end of take_up()
  std::int64_t skipped_in_row_ = 0;  ///< steps up to the last completed one
  Reporter reporter_;
  std::unique_ptr<TrainStep> step_;      ///< null where there was no memory for another one
  std::unique_ptr<OptimizerShare> had_;  ///< as of share_state()
  EvaluationDriver evaluation_;
  CommMetrics comm_metrics_;
  CheckpointDriver checkpoints_;
  ProfileDriver profile_;
  StateSweep sweep_{training_.state};
  std::int64_t told_in_period_ = -1;  ///< of guard.check_every: the last one with states that differ
};

}  // namespace footplate
