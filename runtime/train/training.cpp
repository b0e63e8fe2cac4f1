#include "runtime/train/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "protocol/run_end.h"
#include "runtime/optim/state_entry.h"
#include "runtime/tasks/registry.h"
#include "runtime/train/corpus_check.h"

namespace footplate {
namespace {

constexpr double kRoundingOfSteps = 1e-9;  ///< of a quotient that is a whole number
constexpr double kMostSteps = 1e9;         ///< as in the range of train.steps

}  // namespace

Result<std::unique_ptr<HostedTask>> make_task(const TrainerOptions& options, bool asks) {
  const Communicator& ranks = options.communicator;
  return make_task(options.settings,
                   {.world_size = ranks.world_size(),
                    .rank = [&ranks] { return ranks.rank(); },
                    .folder = options.folder,
                    .log = options.log,
                    .asks_task = asks},
                   device_of(options), options.wrap_task);
}

Training::Training(TrainerOptions the_options, std::unique_ptr<HostedTask> the_task)
    : options(std::move(the_options)),
      device(device_of(options)),
      task_name(options.settings.string("run.task")),
      task(std::move(the_task)),
      corpus(task->corpus()),
      timer(options.progress) {
  set_sharding(Sharding::of(options.settings));
  position.sets.resize(task->sets().size());
  for (const Parameter& parameter : task->parameters())
    state.add(state_entry("model/" + parameter.name, parameter.tensor, device));
  for (const v1::State& one : task->state()) {
    StateEntry entry = state_entry("state/" + one.name, one.tensor, device);
    entry.forward_writes = one.by == v1::State::WrittenBy::forward;
    state.add(std::move(entry));
  }
}

Sharding Sharding::of(const Settings& settings) {
  return {static_cast<int>(settings.integer("optim.shard")),
          choice_of<Redundancy>(settings, "ckpt.redundancy") == Redundancy::memory};
}

double Training::samples_per_epoch() const {
  double samples = 0;
  for (std::size_t set = 0; set < task->sets().size(); ++set)
    samples += task->samples_per_epoch(static_cast<int>(set));
  return samples;
}

Result<void> Training::check_epochs(const Settings& settings) const {
  const std::int64_t epochs = settings.integer("train.epochs");
  if (epochs == 0 || samples_per_epoch() > 0) return {};
  return fail(ErrorKind::usage,
              fmt::format("train.epochs is {} (from {}), and the data of run.task = \"{}\" have no "
                          "end; set train.steps",
                          epochs, settings.source("train.epochs"), task_name));
}

/// What is left of the epochs, in whole steps; at least one step.
std::int64_t Training::steps_of_epochs(const Settings& settings) const {
  const double samples = static_cast<double>(settings.integer("train.epochs")) * samples_per_epoch() -
                         static_cast<double>(position.samples_drawn());
  const double left =
      std::ceil(samples / static_cast<double>(settings.integer("train.batch_size")) - kRoundingOfSteps);
  const double steps = static_cast<double>(position.step) + std::max(0.0, left);
  return static_cast<std::int64_t>(std::clamp(steps, 1.0, kMostSteps));
}

Result<std::optional<std::int64_t>> Training::take_end_of_epochs() {
  if (options.settings.integer("train.epochs") == 0) return std::optional<std::int64_t>();
  if (auto possible = check_epochs(options.settings); !possible) return tl::unexpected(possible.error());
  const std::int64_t steps = steps_of_epochs(options.settings);
  options.settings.set("train.steps", steps, kOfEpochs);
  return std::optional(steps);
}

std::vector<std::string> Training::settle_end(const Settings& before, Settings& after) const {
  const auto differs = [&](const char* name) { return before.value(name) != after.value(name); };
  if (after.integer("train.epochs") == 0) return {};
  if (differs("train.steps") && !differs("train.epochs")) {
    after.set("train.epochs", std::int64_t{0}, after.source("train.steps"));
    return {"train.epochs"};
  }
  if (!differs("train.epochs") && !differs("train.batch_size")) return {};
  after.set("train.steps", steps_of_epochs(after), kOfEpochs);
  return {"train.steps"};
}

double Training::learning_rate(std::int64_t step) const {
  if (const auto own = task->learning_rate(step)) return *own * now.schedule.lr_scale;
  return footplate::learning_rate(now.schedule, step);
}

std::optional<double> Training::told_learning_rate(std::int64_t step) const {
  try {
    return learning_rate(step);
  } catch (...) {
    return std::nullopt;
  }
}

std::string Training::cant_record(const Sharding& sharding) const {
  if (!device.can_record()) return device.description() + " can't record a step, a CUDA device can";
  if (!task->can_be_recorded()) return "run.task = \"" + task_name + "\" reads its data while it computes";
  if (sharding.stage > 1 && world_size() > 1)
    return "optim.shard = 2 reduces gradients while a step makes them";
  return "";
}

bool Training::is_lost(const Error& error, StepGate::Interrupted what, const std::string& tag) {
  if (error.kind != ErrorKind::lost || gate == nullptr || !gate->lost(what, tag)) return false;
  lost = true;
  return true;
}

TrainingProgress Training::progress() const {
  TrainingProgress progress{position, position.samples_drawn(), {}, kept(corpus)};
  progress.position.sets.clear();
  for (std::size_t set = 0; position.sets.size() > 1 && set < position.sets.size(); ++set)
    progress.sets[task->sets()[set].name] = position.sets[set];
  return progress;
}

void Training::take_progress(const TrainingProgress& progress) {
  position = progress.position;
  position.sets.assign(task->sets().size(), {});
  for (std::size_t set = 0; set < position.sets.size(); ++set)
    if (const auto found = progress.sets.find(task->sets()[set].name); found != progress.sets.end())
      position.sets[set] = found->second;
  if (position.sets.size() == 1) position.sets.front().drawn = progress.samples_drawn;
  options.progress.evaluated_best(position.best());
}

void Training::know_best(double loss, std::int64_t step) {
  position.best_eval_loss = loss;
  position.best_eval_at = step;
  position.best_eval_branch = options.branch;
  options.progress.evaluated_best(position.best());
}

std::int64_t TrainingPosition::samples_drawn() const {
  std::int64_t drawn = 0;
  for (const SetPosition& set : sets) drawn += set.drawn;
  return drawn;
}

std::optional<BestEvaluation> TrainingPosition::best() const {
  if (!std::isfinite(best_eval_loss)) return std::nullopt;
  return BestEvaluation{best_eval_loss, best_eval_at, best_eval_branch};
}

}  // namespace footplate
