#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "footplate/task.h"
#include "protocol/result.h"
#include "protocol/settings.h"
#include "runtime/data/corpus_identity.h"
#include "runtime/data/mixture.h"
#include "runtime/device/compute_device.h"
#include "runtime/device/mixed_precision.h"
#include "runtime/models/parameter.h"
#include "runtime/tasks/sample_cache.h"
#include "runtime/tasks/task_host.h"
#include "runtime/tasks/task_sums.h"

namespace footplate {

/// What is known of something that a task throws and that tells nothing of itself.
inline constexpr const char* kThrewNoException = "the task threw something that is no std::exception";

/// What the processors have of some samples.
struct LoadedSamples {
  v1::Batch batch;
  /// The batch has the samples at these positions alone: the device keeps the others.
  std::optional<std::vector<std::size_t>> positions = {};
  std::vector<at::Tensor> by_draw = {};  ///< then, too: of all
};

/// A task as the runtime trains it: what it has is looked up and checked once, its batches are on the run's
/// device, and what it gives is checked where it is used. Training thread, or the thread that evaluates on
/// it.
class HostedTask {
 public:
  /// Puts something around the task itself (FaultyTask).
  using Wrap = std::function<std::unique_ptr<v1::Task>(std::unique_ptr<v1::Task>)>;

  /// Error (usage, or what a built-in task says): what the task's constructor throws; a parameter, a state or
  /// a data set that isn't as task.h wants it. `device` outlives it.
  static Result<std::unique_ptr<HostedTask>> make(const v1::Descriptor& descriptor, const Settings& settings,
                                                  TaskPlace place, const ComputeDevice& device,
                                                  const Wrap& wrap);

  /// For tests: a task that is there already.
  HostedTask(std::unique_ptr<v1::Task> task, v1::Declaration declaration, std::uint64_t seed,
             const ComputeDevice& device);

  const v1::Declaration& declaration() const { return declaration_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<v1::Group>& groups() const { return groups_; }
  const std::vector<v1::State>& state() const { return state_; }
  const SumsLayout& sums() const { return sums_; }  ///< of a step
  /// Of an evaluation: its measured part has what is counted there alone, too.
  const SumsLayout& held_out_sums() const { return held_out_sums_; }
  const ComputeDevice& device() const { return device_; }

  /// In the order in which Draws and SetMetrics number them.
  const std::vector<v1::DataSet>& sets() const { return sets_; }
  /// Of each set, as these settings have them. Error (refused): all are 0, or that of a set without training
  /// samples isn't.
  Result<std::vector<double>> shares(const Settings& settings) const;

  /// Not empty.
  v1::Batch load(const Draws& draws) const { return on_device(draws, load_on_host(draws)); }
  /// The same in two parts, the first one on any thread.
  LoadedSamples load_on_host(const Draws& draws) const;
  v1::Batch on_device(const Draws& draws, LoadedSamples loaded) const;
  /// Of the held-out samples of a set with these numbers; not empty.
  v1::Batch load_held_out(int set, std::span<const std::int64_t> samples) const;
  std::vector<std::int64_t> held_out() const;  ///< samples, by set
  std::int64_t held_out_samples() const;       ///< of all sets
  double samples_per_epoch(int set) const;
  /// What it reads its samples from, which is to be the same on all ranks.
  CorpusIdentity corpus() const;

  /// The random numbers of loss() begin with a seed that follows from run.seed and these samples: a step that
  /// is computed again has the same ones, whatever was drawn before, and each rank has others.
  void seed(const Draws& draws) const;
  /// The sum over the batch: one float on the device. Throws where the task gives something else.
  at::Tensor loss(const v1::Batch& batch, v1::Sums& sums);
  at::Tensor evaluate(const v1::Batch& batch, v1::Sums& sums);

  /// Reduced statistics, behind the optimizer's pass of `step`; where `skip` is 1 nothing may be written.
  /// What it draws on the processors is the same on all ranks: it follows from run.seed and the step.
  void update(const at::Tensor& row, const at::Tensor& skip, std::int64_t step);

  /// Control thread: the task's refusal of these settings. make() has asked it about those of the start.
  Result<void> prepare(const Settings& after) const;
  /// What the task throws here fails the next step.
  void changed(const Settings& now, std::int64_t step);
  /// Settings as they were told last; nothing: not yet.
  const std::optional<Settings>& told() const { return told_; }
  /// One of the declared actions, as Schema calls it ("task.NAME"). What it draws is the same on all ranks,
  /// as in update(), also on a device.
  Result<Json> call(const std::string& action, const Json& arguments, std::int64_t step);
  std::vector<std::string> actions() const;
  /// Throws where the task gives one that isn't finite.
  std::optional<double> learning_rate(std::int64_t step) const;
  /// Whether the task has a rate of its own for this step, and sched.* says nothing of it.
  bool decides_learning_rate(std::int64_t step) const noexcept;

  void recompute(bool on) { task_->recompute(on); }
  bool can_recompute() const { return task_->can_recompute(); }
  bool can_be_recorded() const { return task_->can_be_recorded(); }
  double flops_per_token() const { return flops_per_token_; }
  std::string runs_on(Precision precision) const { return task_->runs_on(precision == Precision::bf16); }

 private:
  HostedTask(std::unique_ptr<TaskHost> host, std::unique_ptr<v1::Task> task, v1::Declaration declaration,
             std::uint64_t seed, const ComputeDevice& device);
  /// What random numbers are for, where all ranks have to draw the same.
  enum class Drawing { in_update, in_an_action };
  std::uint64_t seed_of(std::int64_t step, Drawing drawing) const;
  void check() const;
  void check_sets() const;
  void keep_in_bf16() const;
  struct Drawn;
  Drawn drawn(const Draws& draws) const;
  std::int64_t index_of(int set, std::int64_t draw) const;
  bool keeps(const v1::Samples& samples) const;
  LoadedSamples on_host(const v1::Samples& samples) const;
  v1::Batch completed(const v1::Samples& samples, LoadedSamples loaded) const;
  v1::Batch missing_of(const v1::Samples& samples, std::span<const std::size_t> positions) const;
  v1::Batch checked(const v1::Samples& samples) const;
  at::Tensor bring(const at::Tensor& tensor) const { return device_.bring(tensor, pins_); }
  void configure_cache(const Settings& now);
  void mode(bool training);

  const std::unique_ptr<TaskHost> host_;  ///< the task refers to it; null in tests
  const std::unique_ptr<v1::Task> task_;
  const v1::Declaration declaration_;
  const std::uint64_t seed_;
  const ComputeDevice& device_;
  const std::vector<Parameter> parameters_;
  const std::vector<v1::Group> groups_;
  const std::vector<v1::State> state_;
  const std::vector<v1::DataSet> sets_;
  const SumsLayout sums_, held_out_sums_;
  bool with_replacement_ = false;
  bool pins_ = true;
  CachePlace cache_place_ = CachePlace::none;  ///< where cache_ is
  std::unique_ptr<SampleCache> cache_;         ///< null: nothing is kept
  std::optional<bool> training_;               ///< the mode that the task was told
  std::optional<Settings> told_;
  double flops_per_token_ = 0;  ///< as of the last changed()
  std::string broken_;          ///< what changed() threw: loss() throws it, until another changed() went well
};

/// An error of a built-in task with its kind; a plugin's are all usage errors.
class TaskError : public std::runtime_error {
 public:
  explicit TaskError(const Error& error) : std::runtime_error(error.message), kind(error.kind) {}
  const ErrorKind kind;
};

}  // namespace footplate
