#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/compute_device.h"
#include "runtime/tasks/task.h"
#include "runtime/train/adamw.h"
#include "runtime/train/async_evaluation.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/gradient_buffer.h"
#include "runtime/train/gradient_reducer.h"
#include "runtime/train/phase_timer.h"
#include "runtime/train/step_recorder.h"
#include "runtime/train/step_settings.h"
#include "runtime/train/trainer.h"

namespace footplate {

inline ComputeDevice& device_of(const TrainerOptions& options) {
  return options.device != nullptr ? *options.device : host_device();
}

/// The task that run.task names, for these ranks.
Result<std::unique_ptr<Task>> make_task(const TrainerOptions& options);

/// The trainer behind its door: everything that sees LibTorch. Training thread.
class Trainer::Loop {
 public:
  Loop(TrainerOptions options, std::unique_ptr<Task> task);

  Result<Ending> run(StepGate& gate);
  Result<void> load(const std::string& checkpoint);
  Result<Json> save(const std::string& tag);
  std::vector<Moved> settings_changed(const Settings& now, std::int64_t step);

  /// In a world of fewer ranks (Steerable::rejoin).
  Result<void> rejoin(const Rejoin& now);

  /// guard.repair: all take the state of `source`.
  Result<Json> repair(int source);

  /// eval.now; `batches`: none = eval.batches.
  Result<Json> evaluate_now(std::optional<std::int64_t> batches);

  /// Any thread.
  const TrainerOptions& options() const { return options_; }
  /// Why train.cuda_graph would change nothing; empty: it wouldn't. Any thread.
  std::string cant_record() const;
  int rank() const { return options_.communicator.rank(); }

  const CorpusIdentity& corpus() const { return corpus_; }
  std::int64_t step() const { return step_; }
  const std::string& last_checkpoint() const { return last_checkpoint_; }
  const StateTable& state() const { return state_; }
  bool failed_together() const { return failed_together_; }

 private:
  static constexpr double kNoEvaluation = std::numeric_limits<double>::infinity();

  // One step, in the order of its parts (step.cpp).
  /// False: nothing has changed, and the step is to be tried again.
  Result<bool> train_step();
  void accumulate_gradients();
  void forward_backward(Slice samples, bool last);
  Slice samples_from(std::int64_t first) const;
  Slice micro_batch_at(std::int64_t first, const Slice& slice) const;
  void load_ahead();
  at::Tensor load(const Slice& samples);
  at::Tensor loss_of(const at::Tensor& batch);
  void update_parameters();
  Result<bool> after_failure(const std::string& reason);
  bool try_with_less_memory(const std::string& reasons);
  void propose_smaller_micro_batch();
  Result<void> count_nonfinite();

  // What comes between steps (loop.cpp).
  void after_step();
  void tell_computing();
  void tell_other_corpus();
  void tell_refusal();
  double peak_tflops() const;
  void log_step();
  void evaluate_if_due();
  void evaluate_and_record(std::int64_t batches);
  void start_evaluation();
  void finish_evaluation();
  void give_up_evaluation(const char* why);
  void record(std::int64_t step, const Result<EvalResult>& result);
  EvalPlan evaluation_plan(std::int64_t batches) const;
  EvalPorts evaluation_ports(std::int64_t step) const;
  Result<EvalResult> evaluate_held_out(std::int64_t batches);
  Result<EvalResult> explained(Result<EvalResult> result);
  void know_best(double loss, std::int64_t step);
  void note_best(std::int64_t step, const Result<EvalResult>& result);
  Json describe(std::int64_t step, const EvalResult& result) const;
  Result<void> check_rank_0();
  static Error lost_in_save();
  void save_and_record(const std::string& tag = "");
  Ending end();
  void save_and_evaluate(const Ending& ending);
  bool is_lost(const Error& error, StepGate::Interrupted what = StepGate::Interrupted::work,
               const std::string& tag = "");
  Result<void> level(int source);
  Json progress() const;
  void take_progress(const Json& progress);
  void configure();
  bool records() const { return now_.cuda_graph && cant_record().empty(); }
  void write(Json line);
  void publish(const char* topic, const Json& data);
  void log(const std::string& text) const;
  Communicator& reduces_gradients() const {
    return options_.gradients != nullptr ? *options_.gradients : options_.communicator;
  }
  double current_learning_rate() const { return learning_rate(now_.schedule, step_); }

  TrainerOptions options_;
  ComputeDevice& device_;
  const std::string task_name_;  ///< run.task, which is fixed; any thread
  StepSettings now_;             ///< options_.settings, looked up
  std::unique_ptr<Task> task_;
  const CorpusIdentity corpus_;
  GradientBuffer gradients_;
  GradientReducer reducer_;
  AdamW optimizer_;
  StepRecorder recorder_;
  std::optional<std::pair<Slice, at::Tensor>> loaded_ahead_;
  StateTable state_;
  AsyncEvaluation async_evaluation_;
  bool evaluation_left_out_ = false;  ///< while that one is under way, and said
  std::string computing_;             ///< as it was told last
  PhaseTimer timer_;
  StepGate* gate_ = nullptr;  ///< while run() runs

  // Kept in checkpoints, as the state table is.
  std::int64_t step_ = 0;  ///< completed
  std::int64_t samples_drawn_ = 0;
  double best_eval_loss_ = kNoEvaluation;
  std::int64_t best_eval_at_ = -1;  ///< step

  // Of the last step, for its metrics.
  StepSums sums_;
  double learning_rate_ = 0;
  at::Tensor norm_;  ///< of the mean gradient, on the device; one double
  double grad_norm_ = 0;
  std::int64_t tokens_since_line_ = 0, steps_since_line_ = 0;

  std::int64_t smaller_micro_batch_ = 0;  ///< that footplate waits for; 0: for none

  // Steps that weren't finite, the same on all ranks.
  std::int64_t nonfinite_ = 0;         ///< since the start
  std::int64_t nonfinite_in_row_ = 0;  ///< up to the last step

  std::int64_t evaluated_at_ = -1;
  std::string last_checkpoint_;
  std::string other_corpus_;  ///< than that checkpoint's: what is to be told of it
  bool failed_together_ = false;
  bool lost_ = false;  ///< something came to nothing by it: the gate brings this rank level
};

}  // namespace footplate
