#include "runtime/train/training.h"

#include <cmath>

#include "runtime/optim/state_entry.h"
#include "runtime/tasks/registry.h"
#include "runtime/train/corpus_check.h"

namespace footplate {

Result<std::unique_ptr<HostedTask>> make_task(const TrainerOptions& options) {
  return make_task(options.settings, options.communicator.world_size(), device_of(options), options.wrap_task,
                   options.log);
}

Training::Training(TrainerOptions the_options, std::unique_ptr<HostedTask> the_task)
    : options(std::move(the_options)),
      device(device_of(options)),
      task_name(options.settings.string("run.task")),
      task(std::move(the_task)),
      corpus(task->corpus()),
      timer(options.progress) {
  for (const Parameter& parameter : task->parameters())
    state.add(state_entry("model/" + parameter.name, parameter.tensor, device));
  for (const v1::State& one : task->state()) state.add(state_entry("state/" + one.name, one.tensor, device));
}

double Training::learning_rate(std::int64_t step) const {
  if (const auto own = task->learning_rate(step)) return *own * now.schedule.lr_scale;
  return footplate::learning_rate(now.schedule, step);
}

std::string Training::cant_record() const {
  if (!device.can_record()) return device.description() + " can't record a step, a CUDA device can";
  if (!task->can_be_recorded()) return "run.task = \"" + task_name + "\" reads its data while it computes";
  return "";
}

bool Training::is_lost(const Error& error, StepGate::Interrupted what, const std::string& tag) {
  if (error.kind != ErrorKind::lost || gate == nullptr || !gate->lost(what, tag)) return false;
  lost = true;
  return true;
}

TrainingProgress Training::progress() const {
  return {position, kept(corpus)};
}

void Training::take_progress(const TrainingProgress& progress) {
  position = progress.position;
  options.progress.evaluated_best(position.best());
}

void Training::know_best(double loss, std::int64_t step) {
  position.best_eval_loss = loss;
  position.best_eval_at = step;
  position.best_eval_branch = options.branch;
  options.progress.evaluated_best(position.best());
}

std::optional<BestEvaluation> TrainingPosition::best() const {
  if (!std::isfinite(best_eval_loss)) return std::nullopt;
  return BestEvaluation{best_eval_loss, best_eval_at, best_eval_branch};
}

}  // namespace footplate
