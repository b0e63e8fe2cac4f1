#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "protocol/mutex.h"
#include "protocol/result.h"
#include "runtime/base/condition.h"
#include "runtime/base/progress.h"
#include "runtime/comm/communicator.h"
#include "runtime/tasks/hosted_task.h"
#include "runtime/train/evaluation.h"

namespace footplate {

/// An evaluation beside training, one at a time: on a copy of the parameters, on a thread of its own at
/// a lower priority. It costs one copy of the model, what one evaluation batch takes, and what a second task
/// holds: it opens the data again, and data.cache keeps its held-out samples apart from those of training.
/// Only the reduction of the sums is collective: it runs on the training thread once every rank's share is
/// there, which the step's own reduction tells (StepSums::evaluations_ready), so no rank waits for another
/// one's evaluation. Training thread, except where marked.
class AsyncEvaluation {
 public:
  /// Makes the task that holds the copy; it has the same parameters, in the same order.
  using MakeTask = std::function<Result<std::unique_ptr<HostedTask>>()>;

  /// `progress`, where given, is told what is under way; it outlives this object.
  explicit AsyncEvaluation(MakeTask make_task, Progress* progress = nullptr)
      : make_task_(std::move(make_task)), progress_(progress) {}
  ~AsyncEvaluation();  ///< gives up what is under way, after the batch it is at

  bool under_way() const { return under_way_; }
  /// Completed steps whose parameters are evaluated; of the last one after finish().
  std::int64_t step() const { return step_; }

  /// Copies what `training` has and begins. None may be under way. What fails here fails as this rank's
  /// share.
  void start(std::int64_t step, const HostedTask& training, const Communicator& communicator,
             const EvalPlan& plan);

  /// The copy that is evaluated, unchanged until the next start(); empty where there was no memory for it.
  std::vector<Parameter> parameters() const;

  /// Whether this rank's share is there.
  bool ready() const;

  /// Collective: all ranks' shares, as evaluate() would tell them. Waits for this rank's own share; where
  /// ports.abandon comes first, all ranks give up (refused).
  /// `task`: the one that is trained; it says what the sums are.
  Result<EvalResult> finish(Communicator& communicator, const HostedTask& task, const EvalPorts& ports);

  /// Nothing comes of what is under way. On all ranks.
  void give_up();

 private:
  void copy(const HostedTask& training);
  void work(const Communicator& communicator);  ///< its own thread
  EvalShare wait(const std::function<bool()>& abandon);
  void deliver(EvalShare share);
  void end();

  MakeTask make_task_;
  Progress* progress_;
  std::unique_ptr<HostedTask> task_;  ///< made at the first start
  bool under_way_ = false;
  std::int64_t step_ = -1;
  EvalPlan plan_;
  std::atomic<bool> stop_{false};
  mutable Mutex mutex_;
  Condition finished_;
  std::optional<EvalShare> share_ GUARDED_BY(mutex_);  ///< this rank's, once it is there
  std::thread thread_;
};

}  // namespace footplate
