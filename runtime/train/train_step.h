#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/result.h"
#include "runtime/optim/optimizer_share.h"
#include "runtime/train/batch_loader.h"
#include "runtime/train/forward_state.h"
#include "runtime/train/gradient_buffer.h"
#include "runtime/train/gradient_reducer.h"
#include "runtime/train/step_recorder.h"
#include "runtime/train/step_share.h"
#include "runtime/train/training.h"

namespace footplate {

class Reporter;

/// What the last step came to, the same on all ranks.
struct StepOutcome {
  StepSums sums;
  double learning_rate = 0;
  double grad_norm = 0;        ///< of the mean gradient
  std::int64_t nonfinite = 0;  ///< steps since the start whose gradients or loss weren't finite
};

/// What a rank tells all others with the sums of a step.
struct OfThisRank {
  bool evaluation_ready = false;            ///< its share of the one beside training is there
  bool saves = false;                       ///< it writes a checkpoint beside training
  float due = 0;                            ///< of rank 0: Timetable::by_time
  std::optional<std::uint64_t> state_hash;  ///< of StateSweep's slice, where one was due
};

/// The parts of one training step, in the order of their declaration, with the gradients and the optimizer
/// that they work on. Training thread.
class TrainStep {
 public:
  /// `has`: made for the same division of the optimizer's state, and without gradients (take_kept()); null:
  /// it begins.
  TrainStep(Training& training, const Reporter& reporter, std::unique_ptr<OptimizerShare> has = nullptr);

  /// Between steps, where settings or ranks are others; `before`: the settings so far.
  void configure(const StepSettings& before);

  /// No thread is in the task's load() once this returns, and none will be before the next step.
  void forget_loaded() { loader_.forget(); }
  /// Data, forward and backward of this rank's slice, and the learning rate. What fails here is told to all
  /// ranks by reduce(), but where its device has failed it throws.
  void compute_gradients();
  /// What the next step begins with, while the device is still at this one's gradients.
  void load_ahead();
  /// Sums over all ranks.
  Result<void> reduce(const OfThisRank& of_this_rank);
  /// Enqueues the optimizer's pass, which writes nothing where a rank failed or anything isn't finite, and
  /// the task's own behind it. Errors: where ranks update shares of the parameters, as of
  /// StepShare::gather(); the step counts, conclude() says what it has come to, and the task's update is
  /// pending.
  Result<void> update();
  /// What it has come to. False: nothing has changed, and the step is to be tried again. Errors, the same on
  /// all ranks: a rank failed, or steps weren't finite; lost.
  Result<bool> conclude();

  const StepOutcome& outcome() const { return outcome_; }
  /// Whether the ranks gave reduce() different hashes of their state: in one of 65,536 cases it doesn't show.
  bool states_differ() const;
  /// What the task declares, of the last step, over all ranks. Waits for the device; empty where it declares
  /// none.
  std::map<std::string, double> metrics_of_task() const;
  /// Of several data sets, in their order: what was computed of each over all ranks since this was asked
  /// last. Waits for the device.
  std::vector<SetMetrics> take_set_metrics();
  /// Whether conclude() has returned an error that all ranks have.
  bool failed_together() const { return failed_together_; }
  /// Why recording was given up (train.cuda_graph), once.
  std::optional<std::string> take_refusal() { return recorder_.take_refusal(); }
  /// To the rank 0 of now, where the ranks wait for it; else nothing.
  void propose_smaller_micro_batch() const;

  /// What a levelled rank takes over besides the state table.
  NonfiniteCounts counts() const;
  void take_counts(const NonfiniteCounts& counts);

  /// What of the optimizer's state and work is this rank's.
  const OptimizerShare& optimizer() const { return *optimizer_; }
  /// The task may have written its parameters.
  void take_parameters() { optimizer_->take_parameters(); }
  /// Whether all parameters are of one step: not where those of other ranks didn't come.
  bool parameters_are_whole() const { return !share_ || share_->parameters_are_whole(); }
  /// Collective, after a loss, where ranks share the optimizer's state: those who are `behind` make the
  /// update that `source` made last, of their shares and copies. They have the gradients
  /// (StepShare::reduce_sums). Errors: as of an operation.
  Result<void> catch_up(int source, bool behind);
  /// The task's update of the last step, where it is pending: all parameters are of that step now.
  void make_pending_update();
  /// What Task::update() is to get.
  struct TaskUpdate {
    at::Tensor row, skip;
    std::int64_t step = 0;
  };
  /// What goes on where the parts of a step are made for another division of the state.
  struct Kept {
    std::unique_ptr<OptimizerShare> optimizer = {};  ///< without gradients
    NonfiniteCounts counts = {};
    std::int64_t smaller_micro_batch = 0;
    at::Tensor since_taken = {};  ///< sums of the data sets; undefined: none yet
    std::optional<TaskUpdate> pending = {};
  };
  /// No step can be made with this object any more.
  Kept take_kept();
  /// Takes over all but the optimizer.
  void put_kept(const Kept& kept);

 private:
  void accumulate_gradients();
  void forward_backward(const Draws& draws, bool last);
  StepSamples samples_after(const std::vector<SetPosition>& sets) const;
  std::vector<Draws> parts_of(const StepSamples& step) const;
  int most_passes() const;
  void add_coming(const StepSamples& step, std::vector<Draws>& parts) const;
  v1::Batch load(const Draws& draws);
  void update_parameters();
  void update_task(const TaskUpdate& update);
  /// Of the sums that the task declares, this rank's before reduce() and all ranks' after it.
  at::Tensor task_row() const { return gradients_.others().narrow(0, 0, training_.task->sums().size()); }
  at::Tensor measured() const { return task_row().narrow(0, 0, training_.task->sums().measured()); }
  Result<bool> after_failure();
  bool try_with_less_memory(const std::string& reasons);
  Result<void> count_nonfinite();

  Training& training_;
  const Reporter& reporter_;
  GradientBuffer gradients_;
  BatchLoader loader_;
  RowOfSums task_sums_;               ///< the gradients' others begin with them
  ForwardState forward_state_;        ///< the rest of the others
  std::unique_ptr<StepShare> share_;  ///< where ranks have shares of the optimizer's state
  std::unique_ptr<GradientReducer> reducer_;
  std::unique_ptr<OptimizerShare> optimizer_;
  StepRecorder recorder_;
  std::optional<std::pair<Draws, v1::Batch>> loaded_ahead_;
  std::vector<double> shares_;  ///< of the data sets
  at::Tensor since_taken_;      ///< of several data sets: what was measured, as doubles on the device
  double learning_rate_ = 0;    ///< of the step under way
  std::string failure_;         ///< of this rank, in the step under way; empty: none
  at::Tensor norm_;             ///< of the mean gradient, on the device; one double
  at::Tensor divisor_, skip_;   ///< of the last update, on the device; one float each
  std::optional<TaskUpdate> pending_;
  StepOutcome outcome_;
  std::int64_t nonfinite_in_row_ = 0;     ///< up to the last step
  std::int64_t smaller_micro_batch_ = 0;  ///< that the ranks wait for; 0: for none
  bool failed_together_ = false;
};

}  // namespace footplate
