#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/settings.h"
#include "runtime/base/progress.h"
#include "runtime/comm/communicator.h"
#include "runtime/orders/steerable.h"
#include "runtime/orders/step_gate.h"
#include "runtime/state/ports.h"

namespace footplate {

class ComputeDevice;
class Ledger;
namespace v1 {
class Task;
}

/// What a trainer is made from. Everything referred to outlives it.
struct TrainerOptions {
  Settings settings;
  Communicator& communicator;
  Progress& progress;
  int local_ranks = 1;                               ///< ranks that share this host's cores
  Saver* saver = nullptr;                            ///< none: saving is an error that says so
  Sink* sink = nullptr;                              ///< used on rank 0
  std::function<void(const std::string& text)> log;  ///< a line for people; any rank; may be empty
  ComputeDevice* device = nullptr;                   ///< where it trains; null: the processors
  Communicator* gradients = nullptr;                 ///< reduces the gradients; null: `communicator` does
  /// Training thread, at the top of each step once its orders are in force; collective where it has to be.
  /// An error is as one of the step. May be empty.
  std::function<Result<void>(std::int64_t step)> before_step = {};
  /// Puts something around each task that the trainer makes (FaultyTraining). May be empty.
  std::function<std::unique_ptr<v1::Task>(std::unique_ptr<v1::Task>)> wrap_task = {};
  std::string branch = "main";     ///< that the metrics are of
  std::string folder = {};         ///< the run's, for files of the task; empty: none
  bool joins = false;              ///< its state comes from the ranks that it joins, by the first rejoin()
  const Ledger* ledger = nullptr;  ///< of the communicators: profile.now, comm/… metrics; may be null
};

/// A device that its process can't use any more.
struct DeviceFailure {
  std::string id, description;  ///< as of ComputeDevice
  std::string why;
};

/// One rank's training: model, data, optimizer, and the step loop. All methods belong to the training
/// thread, except prepare().
///
/// A step is the same on any number of ranks up to rounding: the global batch is a function of the
/// seed and the samples drawn so far, gradients are sums over all ranks divided by the global token
/// count. On the same number of ranks, with the same settings, it is the same bit for bit.
class Trainer : public Steerable {
 public:
  /// Reads the corpus and builds the model. Errors (usage): missing corpus, impossible combination.
  static Result<std::unique_ptr<Trainer>> create(TrainerOptions options);
  ~Trainer() override;

  /// Whether all ranks have the same corpus: once each has its trainer. `of_run`, in a process that joins a
  /// run: the ranks' corpus_hash(); else empty. Collective. Error (usage), the same on all: who has another.
  Result<void> check_corpus(const std::string& of_run) const;
  std::string corpus_hash() const;

  /// Goes on from `checkpoint`, on every rank. Before run(). An error of any rank is an error on all.
  Result<void> load(const std::string& checkpoint);

  /// Trains until the gate says end, then evaluates and saves as that ending asks. Errors, the same on
  /// all ranks: a rank failed in a step (named; the state is that of the last completed step); steps
  /// weren't finite (guard.nonfinite; the state is that before them); or a collective failed (then the state
  /// of the ranks may differ by a step). Where a rank is lost and the gate can bring the others together,
  /// they go on.
  Result<Ending> run(StepGate& gate);

  /// Whether all ranks begin with the same state: before run(), and behind load(). Collective. Error (usage),
  /// the same on all: who has another, and in which tensor.
  Result<void> check_state() const;

  /// Where train.epochs says when the run ends: sets train.steps, from here on. Before run(), and behind
  /// load(). Nothing: it doesn't. Error (usage), the same on all ranks: the data have no epochs.
  Result<std::optional<std::int64_t>> take_end_of_epochs();

  std::int64_t step() const;  ///< completed steps
  /// Of the step to come. Where the task can't tell its own, what sched.* says.
  double learning_rate() const;
  /// How many of them, up to the last one, were skipped, as they weren't finite: since those nothing was
  /// trained.
  std::int64_t skipped_in_row() const;
  /// After a failed run(): whether every rank returned that error. Where not, the others may be inside
  /// a collective that this rank will never enter, and nothing collective is left to do.
  bool failed_together() const;
  /// After a failed run(): why this rank's device computes nothing any more. Nothing: it does.
  std::optional<DeviceFailure> device_failure() const;
  std::string last_checkpoint() const;  ///< path of the newest one saved or loaded; empty: none
  const StateTable& state() const;

  /// Saves at the current step, on every rank; also after a failed run(). The result is ckpt.save's.
  Result<SaveResult> save(const std::string& tag);

  /// What is saved beside training is waited for. Collective, in a call. Error: lost.
  Result<void> finish_saves();

  std::vector<std::string_view> actions() const override;
  Result<void> prepare(const Order& order, const Settings& after) override;
  std::vector<std::string> settle(const Settings& before, Settings& after) override;
  std::vector<Moved> settings_changed(const Settings& now, std::int64_t step) override;
  Result<CallResult> call(const Call& call, std::int64_t step) override;
  Result<std::optional<double>> renew(const Settings& after, Renewal what, std::int64_t step) override;
  void stand(bool whole) override;
  HeldShare held_share() const override;
  Result<void> rejoin(const Rejoin& rejoin) override;
  Result<void> take_up(const Rejoin& rejoin) override;

 private:
  class Loop;
  Result<void> prepare_checkpoint(const Call& call, bool now) const;
  explicit Trainer(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace footplate
