#include "runtime/train/evaluation_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/device/kept_generators.h"
#include "runtime/train/metrics_line.h"

namespace footplate {
namespace {

/// Whether it is of all samples that were wanted.
bool is_whole(const Result<EvalResult>& result) {
  return result && !result->partial();
}

}  // namespace

EvaluationDriver::EvaluationDriver(Training& training, const Reporter& reporter, OnBest on_best)
    : training_(training),
      reporter_(reporter),
      on_best_(std::move(on_best)),
      beside_([options = training.options] { return make_task(options, /*asks=*/false); },
              &training.options.progress) {}

bool EvaluationDriver::evaluates() const {
  return training_.now.eval_mode != EvalMode::off && training_.task->held_out_samples() > 0;
}

EvalPlan EvaluationDriver::plan(std::int64_t batches) const {
  const StepSettings& now = training_.now;
  return {batches, now.eval_batch_size, now.eval_mode, training_.precision()};
}

/// Which samples that many batches are, beside those of eval.batches.
EvaluatedOn EvaluationDriver::choice_of(std::int64_t batches) const {
  const std::int64_t all = training_.task->held_out_samples();
  const auto samples = [&](std::int64_t of) {
    return of == 0 ? all : std::min(all, of * training_.now.eval_batch_size);
  };
  if (samples(batches) == samples(training_.now.eval_batches)) return EvaluatedOn::batches;
  return samples(batches) == all ? EvaluatedOn::everything : EvaluatedOn::other;
}

/// For the evaluation of the parameters after `step`.
EvalPorts EvaluationDriver::ports(std::int64_t step) {
  return {[this, step] {
            return training_.options.progress.is_cancelled(step) ||
                   (training_.gate != nullptr && training_.gate->abandon());
          },
          [this] {
            if (training_.gate == nullptr || training_.world_size() == 1) return Result<void>();
            return training_.gate->meet("the reduction of an evaluation", training_.now.eval_meet_timeout);
          },
          [this](const LocalEvaluation& local) { local_ = local; }};
}

void EvaluationDriver::after_step(bool all_ready, bool due) {
  if (all_ready) finish();
  const StepSettings& now = training_.now;
  if (!due) return;
  if (now.eval_async)
    start_beside();
  else
    evaluate_and_record(now.eval_batches);
}

void EvaluationDriver::evaluate_and_record(std::int64_t batches) {
  if (!evaluates()) return;
  const std::int64_t step = training_.position.step;
  const auto result = evaluate_between(batches);
  if (is_whole(result)) training_.position.evaluated_at = step;
  conclude(parameters_of_now(), result);
}

Result<EvalResult> EvaluationDriver::evaluate_between(std::int64_t batches) {
  const std::int64_t step = training_.position.step;
  training_.timer.enter(Phase::evaluation);
  if (training_.now.eval_mode == EvalMode::one && training_.world_size() > 1)
    reporter_.log(training_.rank() == 0 ? "rank 0 evaluates, the others wait"
                                        : "waiting for rank 0 to evaluate");
  training_.options.progress.evaluates_now(step);
  local_.reset();
  // What it draws is the same each time, and changes nothing that training draws.
  KeptGenerators kept(training_.device.where());
  kept.seed(static_cast<std::uint64_t>(training_.options.settings.integer("run.seed")));
  auto result =
      explained(evaluate(*training_.task, training_.options.communicator, plan(batches), ports(step)));
  training_.options.progress.evaluates_now(std::nullopt);
  training_.timer.enter(Phase::boundary);
  if (result) result->on = choice_of(batches);
  return result;
}

/// What a loss of the communicator ended is told with its reason, where control knows one; and what this rank
/// has found by itself for what it is.
Result<EvalResult> EvaluationDriver::explained(Result<EvalResult> result) {
  if (result) return result;
  Error error = std::move(result.error());
  if (training_.is_lost(error))
    if (const std::string why = training_.gate->interruption(); !why.empty())
      error = {ErrorKind::timed_out, "evaluation skipped: " + why};
  if (local_) error.message += fmt::format(". Local loss of rank {}: {:.4f}", training_.rank(), local_->loss);
  return tl::unexpected(std::move(error));
}

/// Of evaluations on eval.batches alone, as it was when they began: another choice of samples has another
/// loss.
bool EvaluationDriver::note_best(std::int64_t step, const Result<EvalResult>& result) {
  if (!is_whole(result) || result->on != EvaluatedOn::batches) return false;
  if (result->loss >= training_.position.best_eval_loss) return false;
  training_.know_best(result->loss, step);
  return true;
}

void EvaluationDriver::conclude(const BestParameters& of, const Result<EvalResult>& result) {
  const bool is_best = note_best(of.step, result);
  record(of.step, result);
  if (is_best && of.wanted) on_best_(of);
}

EvaluationDriver::BestParameters EvaluationDriver::parameters_of_now() const {
  return {training_.position.step, false, training_.now.keep_best > 0, nullptr};
}

/// Training goes on at once.
void EvaluationDriver::start_beside() {
  if (!evaluates()) return;
  const std::int64_t step = training_.position.step;
  if (!beside_.under_way()) {
    const auto since = Progress::Clock::now();
    left_out_ = false;
    beside_.start(step, *training_.task, training_.options.communicator, plan(training_.now.eval_batches));
    keep_state();
    waited_ = Progress::Clock::now() - since;
    return;
  }
  if (std::exchange(left_out_, true)) return;
  reporter_.warn(WarningKind::evaluation, step,
                 fmt::format("step {}: no evaluation, that of step {} is still under way; eval.every is "
                             "shorter than one takes",
                             step, beside_.step()));
}

/// Where there is no memory for it the save fails and says so, on all ranks.
void EvaluationDriver::keep_state() {
  kept_.reset();
  keeps_ = training_.now.keep_best > 0 && training_.options.saver != nullptr;
  if (!keeps_ || training_.is_sharded()) return;
  const auto copy = beside_.parameters();
  try {
    kept_ = std::make_unique<EvaluatedState>(training_, copy);
  } catch (const std::exception& error) {
    reporter_.log(
        fmt::format("step {}: no copy of the state for ckpt.keep_best: {}", beside_.step(), explain(error)));
  }
}

void EvaluationDriver::finish() {
  if (!beside_.under_way()) return;
  training_.timer.enter(Phase::evaluation);
  const auto since = Progress::Clock::now();
  const std::int64_t step = beside_.step();
  local_.reset();
  auto result = explained(beside_.finish(training_.options.communicator, *training_.task, ports(step)));
  training_.timer.enter(Phase::boundary);
  waited_ += Progress::Clock::now() - since;
  if (result) result->waited_s = waited_.count();
  if (is_whole(result)) training_.position.evaluated_at = step;
  const auto kept = std::exchange(kept_, nullptr);
  conclude({step, true, keeps_, kept.get()}, result);
}

void EvaluationDriver::give_up(const char* why) {
  if (!beside_.under_way()) return;
  beside_.give_up();
  kept_.reset();
  const std::int64_t step = training_.position.step;
  reporter_.warn(
      WarningKind::evaluation, step,
      fmt::format("step {}: the evaluation of step {} was given up: {}", step, beside_.step(), why));
}

void EvaluationDriver::evaluate_at_end() {
  const StepSettings& now = training_.now;
  const bool evaluated = training_.position.evaluated_at == training_.position.step && now.eval_batches == 0;
  if (now.eval_at_end && !evaluated) evaluate_and_record(0);
}

Result<EvaluationResult> EvaluationDriver::evaluate_now(std::optional<std::int64_t> batches) {
  if (training_.now.eval_mode == EvalMode::off)
    return fail(ErrorKind::refused, "eval.mode is \"off\"; set it to \"all\" or \"one\" first");
  if (training_.task->held_out_samples() == 0)
    return fail(ErrorKind::refused, "the task holds no samples out: there is nothing to evaluate on");
  const std::int64_t step = training_.position.step;
  const auto result = evaluate_between(batches.value_or(training_.now.eval_batches));
  conclude(parameters_of_now(), result);
  if (!result) return tl::unexpected(result.error());
  return describe(step, *result);
}

EvaluationResult EvaluationDriver::describe(std::int64_t step, const EvalResult& result) const {
  EvaluationResult told;
  told.step = step;
  told.loss = result.loss;
  told.metrics = result.metrics.all.declared;
  for (std::size_t set = 0; set < result.metrics.sets.size(); ++set) {
    const SetMetrics& of_set = result.metrics.sets[set];
    if (of_set.weight == 0) continue;
    auto& of = told.sets[training_.task->sets()[set].name] = of_set.declared;
    of["loss"] = of_set.loss;
  }
  told.tokens = result.tokens;
  told.batches = result.batches;
  told.seconds = result.seconds;
  told.on = result.on;
  told.best = training_.position.best_eval_loss;
  if (const auto best = training_.position.best()) told.best_step = best->step;
  told.retries = result.retries;
  if (result.retries > 0) told.reason = result.reason;
  told.partial = result.partial();
  if (result.partial()) told.batches_wanted = result.batches_wanted;
  return told;
}

void EvaluationDriver::record(std::int64_t step, const Result<EvalResult>& result) const {
  if (!result) {
    const std::string text = fmt::format("step {}: {}", step, result.error().message);
    if (result.error().kind == ErrorKind::refused)  // given up on purpose
      return reporter_.warn(WarningKind::evaluation, step, text);
    reporter_.say(text);
    reporter_.write(eval_failed_line(step, result.error(), local_, training_.task->sets()));
    EvaluationResult failed;
    failed.step = step;
    failed.failed = true;
    failed.reason = result.error().message;
    if (local_) failed.local_loss = local_->loss;
    reporter_.publish(std::move(failed));
    return;
  }
  const double best = training_.position.best_eval_loss;
  reporter_.write(eval_line(step, *result, best, training_.task->sets()));
  reporter_.publish(describe(step, *result));
  const std::string of = result->on == EvaluatedOn::everything ? " of everything"
                         : result->on == EvaluatedOn::other ? fmt::format(" of {} batches", result->batches)
                                                            : "";
  std::string text = fmt::format("step {}: held-out loss{} {:.4f}", step, of, result->loss);
  if (std::isfinite(best)) text += fmt::format(", best {:.4f}", best);
  text += fmt::format(", {:.1f} s", result->seconds);
  if (result->partial())
    text += fmt::format("; partial, {} of {} batches", result->batches, result->batches_wanted);
  if (result->retries > 0) text += fmt::format("; retry {}, after {}", result->retries, result->reason);
  reporter_.say(text);
}

}  // namespace footplate
