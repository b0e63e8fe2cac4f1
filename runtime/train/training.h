#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/compute_device.h"
#include "runtime/tasks/hosted_task.h"
#include "runtime/train/phase_timer.h"
#include "runtime/train/step_settings.h"
#include "runtime/train/trainer.h"
#include "runtime/train/training_progress.h"

namespace footplate {

inline ComputeDevice& device_of(const TrainerOptions& options) {
  return options.device != nullptr ? *options.device : host_device();
}

/// The task that run.task names, for the ranks of now. `asks`: as of TaskPlace.
Result<std::unique_ptr<HostedTask>> make_task(const TrainerOptions& options, bool asks);

/// What the ranks share, where there are several (optim.shard), and whether each has a copy of another one's
/// share (ckpt.redundancy).
struct Sharding {
  int stage = 0;  ///< of ZeRO: 1, the optimizer's state; 2, the gradients as well
  bool copies = false;

  static Sharding of(const Settings& settings);
  bool operator==(const Sharding&) const = default;
};

/// What the parts of a trainer work on together: each has this, and its own state besides. Training thread,
/// except where marked.
struct Training {
  Training(TrainerOptions options, std::unique_ptr<HostedTask> task);

  int rank() const { return options.communicator.rank(); }  ///< any thread
  int world_size() const { return options.communicator.world_size(); }
  /// What reduces the gradients.
  Communicator& gradients_communicator() const {
    return options.gradients != nullptr ? *options.gradients : options.communicator;
  }

  /// Of the step that follows so many: the task's own schedule, or sched.*.
  double learning_rate(std::int64_t step) const;
  /// The same. Nothing: the task's own can't be told. The step that needs it fails, and says why.
  std::optional<double> told_learning_rate(std::int64_t step) const;

  /// In what steps and evaluations are computed: train.precision, where the device can; what is kept in bf16
  /// is also computed in it where that is slow.
  Precision precision() const {
    return now.param_dtype == Precision::bf16 ? Precision::bf16 : device.computes_in(now.precision);
  }

  /// Why train.cuda_graph would change nothing where the ranks share that; empty: it would. Any thread.
  std::string cant_record(const Sharding& sharding) const;
  /// Whether steps are recorded.
  bool records() const { return now.cuda_graph && cant_record(sharding_).empty(); }

  /// From here on, once the optimizer's state is divided so.
  void set_sharding(const Sharding& wanted) { sharding_ = wanted; }
  const Sharding& sharding() const { return sharding_; }
  bool is_sharded() const { return sharding_.stage > 0 && world_size() > 1; }
  /// Whether each keeps its share of the gradients only.
  bool shares_gradients() const { return sharding_.stage > 1 && world_size() > 1; }
  bool has_copies() const { return is_sharded() && sharding_.copies; }

  /// Whether it is a lost rank, and the run can go on without: then the next enter() brings this rank level.
  /// The step, evaluation or save that was given up has changed no state, unless `what` says so.
  /// `tag`: of a save.
  bool is_lost(const Error& error, StepGate::Interrupted what = StepGate::Interrupted::work,
               const std::string& tag = "");

  /// Of all data sets; passes over them are counted on average. Any thread.
  double samples_per_epoch() const;
  /// Error (usage): train.epochs says when the run ends, and the data have no epochs. Any thread.
  Result<void> check_epochs(const Settings& settings) const;
  /// Where train.epochs says when the run ends: sets train.steps, as far as the data are now. Nothing: it
  /// doesn't. Error (usage): the data have no epochs.
  Result<std::optional<std::int64_t>> take_end_of_epochs();
  std::int64_t steps_of_epochs(const Settings& settings) const;
  /// Steerable::settle.
  std::vector<std::string> settle_end(const Settings& before, Settings& after) const;

  /// `position` and the corpus.
  TrainingProgress progress() const;
  /// A data set that it hasn't begins at its first sample.
  void take_progress(const TrainingProgress& progress);
  void know_best(double loss, std::int64_t step);

  TrainerOptions options;  ///< its settings are those in force
  ComputeDevice& device;
  const std::string task_name;  ///< run.task, which is fixed; any thread
  const std::unique_ptr<HostedTask> task;
  const CorpusIdentity corpus;
  StepSettings now;  ///< options.settings, looked up
  StateTable state;  ///< every persistent tensor
  TrainingPosition position;
  PhaseTimer timer;
  StepGate* gate = nullptr;  ///< while run() runs
  bool lost = false;         ///< is_lost() has said so, since this was reset

 private:
  Sharding sharding_;
};

}  // namespace footplate
