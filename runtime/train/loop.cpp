#include "runtime/train/loop.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/comm/agree.h"
#include "runtime/state/level_state.h"
#include "runtime/train/share_state.h"
#include "runtime/watch/event_parts.h"

namespace footplate {

Trainer::Loop::Loop(TrainerOptions options, std::unique_ptr<HostedTask> task)
    : training_(std::move(options), std::move(task)),
      reporter_(training_),
      step_(std::make_unique<TrainStep>(training_, reporter_)),
      evaluation_(training_, reporter_,
                  [this](const EvaluationDriver::BestParameters& best) {
                    if (best.beside || !saves_after_step_) checkpoints_.save_best(best);
                  }),
      comm_metrics_(training_.options.ledger),
      checkpoints_(training_, reporter_),
      profile_(training_, reporter_) {
  configure();
}

Result<void> Trainer::Loop::load(const std::string& checkpoint) {
  return checkpoints_.load(checkpoint).and_then([this] { return copy_shares(training_, *step_); });
}

Result<Ending> Trainer::Loop::run(StepGate& gate) {
  training_.gate = &gate;
  training_.device.enter_thread();
  configure();
  training_.task->changed(training_.options.settings, training_.position.step);
  if (step_ != nullptr) step_->take_parameters();
  reporter_.tell_computing();
  reporter_.tell_data();
  reporter_.warn_of_schedule();
  checkpoints_.tell_other_corpus();
  checkpoints_.configure();
  training_.timer.enter(Phase::boundary);
  while (gate.enter(training_.position.step) == StepGate::Verdict::train) {
    const Result<bool> done = train_step();
    if (done && *done) after_step();
    // With a device that has failed it can't find together with the others.
    if (!done && (training_.device.failure() || !training_.is_lost(done.error())))
      return failed(done.error());
    training_.timer.enter(Phase::boundary);
  }
  return end();
}

/// Where all ranks have failed together nobody has written anything: the state is the one before, and worth
/// a checkpoint, as where a signal ends the run.
tl::unexpected<Error> Trainer::Loop::failed(const Error& error) {
  if (step_ != nullptr && step_->failed_together())
    checkpoints_.save_or_warn();
  else
    checkpoints_.finish_here();
  return tl::unexpected(error);
}

Result<void> Trainer::Loop::has_step() const {
  if (step_ != nullptr) return {};
  return fail(ErrorKind::failed,
              "there was no memory for the optimizer's state, neither divided otherwise (optim.shard, "
              "ckpt.redundancy) nor as it was");
}

/// False: nothing has changed, and the step is to be tried again.
Result<bool> Trainer::Loop::train_step() {
  if (auto there = has_step(); !there) return tl::unexpected(there.error());
  if (const auto& before_step = training_.options.before_step)
    if (auto done = before_step(training_.position.step); !done) return tl::unexpected(done.error());
  profile_.before_step();
  const auto now = Timetable::Clock::now();
  if (const auto wait = checkpoints_.take_retry()) timetable_.again_in(Recurring::checkpoint, *wait, now);
  const float by_time = timetable_.by_time(now);
  reporter_.before_step(timetable_.is_due(Recurring::details, training_.position.step + 1, by_time));
  sweep_.begin(training_.position.step, training_.world_size() > 1 ? training_.now.check_every : 0);
  step_->compute_gradients();
  step_->load_ahead();
  const OfThisRank of_this_rank{evaluation_.share_ready(), checkpoints_.is_writing(), by_time,
                                sweep_.finish()};
  if (auto reduced = step_->reduce(of_this_rank); !reduced) return tl::unexpected(reduced.error());
  const auto updated = step_->update();
  if (!updated && updated.error().kind != ErrorKind::lost) return tl::unexpected(updated.error());
  auto done = step_->conclude();
  // Where a rank is lost now, the step counts on all who are left: each has made its part of it, or will.
  if (!updated && done && !training_.is_lost(updated.error())) return tl::unexpected(updated.error());
  return done;
}

void Trainer::Loop::after_step() {
  const StepSettings& now = training_.now;
  const std::int64_t step = training_.position.step;
  const auto ranks = static_cast<float>(training_.world_size());
  training_.timer.enter(Phase::boundary);
  reporter_.count(step_->outcome());
  profile_.after_step();
  skipped_in_row_ = step_->counts().nonfinite_in_row;
  tell_refusal();
  compare_states();  // before a save that relies on it
  const StepSums& sums = step_->outcome().sums;
  const auto due = [&](Recurring what) { return timetable_.is_due(what, step, sums.due); };
  DueMetrics metrics;
  metrics.details = due(Recurring::details);
  metrics.performance = due(Recurring::performance);
  metrics.gauges = due(Recurring::gauges);
  if (due(Recurring::log)) metrics.of_task = step_->metrics_of_task();
  if (training_.task->sums().has_several_sets() && due(Recurring::data_sets))
    metrics.sets = step_->take_set_metrics();
  metrics.has_line = timetable_.has_line(step, sums.due);
  if (metrics.has_line && training_.rank() == 0)
    metrics.collectives = comm_metrics_.take(step, Timetable::Clock::now());
  reporter_.write_step(metrics);
  saves_after_step_ =
      checkpoints_.takes_place(due(Recurring::checkpoint), static_cast<int>(sums.saves_under_way));
  const bool evaluates = due(Recurring::evaluation);
  if (evaluates && !step_->parameters_are_whole())
    reporter_.warn(
        WarningKind::evaluation, step,
        fmt::format("step {}: no evaluation: a rank was lost before all had its parameters", step));
  evaluation_.after_step(sums.evaluations_ready == ranks, evaluates && step_->parameters_are_whole());
  if (std::exchange(saves_after_step_, false)) checkpoints_.save_periodic();
  timetable_.passed(step, sums.due, Timetable::Clock::now());
  if (is_due(now.empty_cache_every, step)) training_.device.empty_cache();
}

/// All ranks know by the step's own sums that some differ; each tells its hashes, and rank 0 compares. What
/// differs stays so: it is told once in a period.
void Trainer::Loop::compare_states() {
  if (!step_->states_differ()) return;
  checkpoints_.know_difference(true);
  const std::int64_t period = (training_.position.step - 1) / training_.now.check_every;
  if (std::exchange(told_in_period_, period) != period) training_.gate->report(sweep_.report());
}

Ending Trainer::Loop::end() {
  training_.timer.enter(Phase::ending);
  profile_.give_up("the run ended before");
  const Ending ending = training_.gate->ending();
  for (;;) {
    training_.lost = false;
    save_and_evaluate(ending);
    if (!training_.lost) break;
    // Brings those who are left together, and ends again.
    training_.gate->enter(training_.position.step);
    training_.timer.enter(Phase::ending);
  }
  training_.timer.enter(Phase::ended);
  return ending;
}

Result<void> Trainer::Loop::finish_saves() {
  training_.lost = false;
  checkpoints_.finish();
  training_.timer.enter(Phase::boundary);
  if (training_.lost) return fail(ErrorKind::lost, "a rank was lost during a save");
  return {};
}

void Trainer::Loop::save_and_evaluate(const Ending& ending) {
  checkpoints_.finish();
  training_.timer.enter(Phase::ending);
  if (training_.lost) return;
  const bool finished = ending.reason == kEndedDone;
  // Saved first: whatever ends the process during a long evaluation then costs no step.
  // One that is there already isn't written again: the saver knows.
  if (ending.save || (finished && training_.now.ckpt_every.is_ever())) {
    if (finished || ending.reason == kEndedAsked || ending.reason == kEndedRestart)
      checkpoints_.save_at_end();
    else  // somebody may kill the ranks soon
      checkpoints_.save_or_warn();
  }
  if (training_.lost) return;
  if (!finished) return evaluation_.give_up("the run ends");
  evaluation_.finish();
  evaluation_.evaluate_at_end();
  if (!training_.lost) checkpoints_.finish();  // the last evaluation may have been the best
}

void Trainer::Loop::configure() {
  const StepSettings before = std::exchange(training_.now, StepSettings::from(training_.options.settings));
  if (step_ != nullptr) step_->configure(before);
  if (!rejoins_) configure_communicators(training_.now);
  reporter_.configure(before);
  timetable_.configure(training_.now, Timetable::Clock::now());
  comm_metrics_.configure(training_.now.log_comm_every, Timetable::Clock::now());
}

/// How operations are cut and checked: the same on all ranks, or they hang.
void Trainer::Loop::configure_communicators(const StepSettings& now) {
  const TrainerOptions& options = training_.options;
  Communicator& gradients = training_.gradients_communicator();
  for (Communicator* one : {&options.communicator, &gradients}) {
    one->set_checks(now.checks_collectives);
    one->set_two_levels(now.hierarchy == Hierarchy::automatic);
  }
  options.communicator.set_chunk_elements(now.chunk_elements);
  // A million elements are good for MPI; over NCCL each piece is a launch on the device.
  const bool goes_by_size =
      options.gradients != nullptr && options.settings.source("comm.chunk_elements") == "default";
  gradients.set_chunk_elements(goes_by_size ? 0 : now.chunk_elements);
}

std::vector<Moved> Trainer::Loop::settings_changed(const Settings& now, std::int64_t step) {
  const auto before = training_.told_learning_rate(step);
  training_.options.settings = now;
  configure();
  checkpoints_.configure();
  training_.task->changed(now, step);
  if (step_ != nullptr) step_->take_parameters();
  reporter_.tell_computing();
  reporter_.tell_data();
  reporter_.warn_of_schedule();
  const auto after = training_.told_learning_rate(step);
  if (!before || !after || *before == *after) return {};
  return {{"optim.lr", *before, *after}};
}

Result<CallResult> Trainer::Loop::call_task(const Call& call, std::int64_t step) {
  if (step_ != nullptr) step_->forget_loaded();
  const auto called = [&] {
    if (training_.now.param_dtype == Precision::fp32)
      return training_.task->call(call.action, call.arguments, step);
    const MixedPrecision precision(training_.precision(), training_.device.where());
    return training_.task->call(call.action, call.arguments, step);
  };
  Result<Json> answer;
  try {
    answer = called();
  } catch (...) {
    if (step_ != nullptr) step_->take_parameters();  // it may have written before it failed
    throw;
  }
  if (step_ != nullptr) step_->take_parameters();
  if (!answer) return tl::unexpected(answer.error());
  return TaskAnswer{*answer};
}

void Trainer::Loop::tell_refusal() {
  const auto why = step_->take_refusal();
  if (!why) return;
  const std::int64_t step = training_.position.step;
  const std::string text =
      fmt::format("step {}: rank {} can't record its steps (train.cuda_graph), and goes on without: {}", step,
                  training_.rank(), *why);
  reporter_.log(text);
  reporter_.publish(warning_at(WarningKind::cuda_graph, step, text));
}

Result<void> Trainer::Loop::rejoin(const Rejoin& now) {
  if (auto there = has_step(); !there) return there;
  evaluation_.give_up("communicators were made anew");
  profile_.give_up("the ranks were made anew");
  rejoins_ = true;
  StepSettings plain;  // an order about how operations go may be in force on some ranks only
  plain.hierarchy = Hierarchy::off;
  configure_communicators(plain);
  TrainerOptions& options = training_.options;
  if (auto there = options.communicator.rejoin(now.generation, now.sequence); !there) return there;
  // NCCL makes its buffers anew, and with a full cache there may be no memory for them.
  training_.device.empty_cache();
  if (options.gradients != nullptr)
    if (auto there = options.gradients->rejoin(now.generation, now.sequence); !there) return there;
  options.local_ranks = now.local_ranks;
  checkpoints_.moved();
  const auto there = !now.checkpoint.empty() ? go_back(now)
                     : now.shared            ? share(now)
                     : now.level             ? level(now.source, training_.state)
                                             : Result<void>();
  if (!there) return there;
  if (!now.level && now.checkpoint.empty())
    if (auto taken = take_evaluations(now.source); !taken) return taken;
  options.joins = false;
  configure();
  const std::int64_t step = training_.position.step;
  reporter_.log(
      fmt::format("step {}: going on as rank {} of {}", step, training_.rank(), training_.world_size()));
  told_in_period_ = -1;
  training_.gate->report({.step = step, .hash = training_.state.hash()});
  return {};
}

Result<void> Trainer::Loop::share(const Rejoin& now) {
  StateTable others;
  for (const StateEntry& entry : training_.state.entries())
    if (entry.name.starts_with("state/")) others.add(entry);
  const auto level_others = [&] { return now.level ? level(now.source, others) : Result<void>(); };
  return share_state(training_, reporter_, step_, had_, now, level_others);
}

/// The steps since the checkpoint are trained again, with the settings of now.
Result<void> Trainer::Loop::go_back(const Rejoin& now) {
  checkpoints_.drop_periodic();
  if (auto divided = divide_anew(training_, reporter_, step_, had_, now); !divided) return divided;
  if (auto loaded = load(now.checkpoint); !loaded) return loaded;
  if (training_.position.step != now.step)
    return fail(ErrorKind::failed, fmt::format("{} is of step {}, not of step {}: it was replaced meanwhile",
                                               now.checkpoint, training_.position.step, now.step));
  skipped_in_row_ = 0;
  checkpoints_.know_difference(false);
  sweep_.know_equal(now.step);
  reporter_.begin_epoch();
  training_.task->changed(training_.options.settings, now.step);
  step_->take_parameters();
  return {};
}

Result<void> Trainer::Loop::share_as(const Sharding& wanted) {
  if (wanted == training_.sharding()) return {};
  evaluation_.give_up("the ranks divide their state");
  const auto began = Progress::Clock::now();
  auto shared = change_sharding(training_, reporter_, step_, wanted);
  if (!shared) {
    training_.is_lost(shared.error());
    return shared;
  }
  const std::chrono::duration<double> took = Progress::Clock::now() - began;
  const char* const kept = wanted.stage == 0   ? "all of the optimizer's state"
                           : wanted.stage == 1 ? "its share of the optimizer's state"
                                               : "its share of the optimizer's state and of the gradients";
  reporter_.say(fmt::format("step {}: each rank has {}{} ({:.2f} s)", training_.position.step, kept,
                            wanted.stage > 0 && wanted.copies ? ", and a copy of another one" : "",
                            took.count()));
  return {};
}

Result<void> Trainer::Loop::take_up(const Rejoin& now) {
  // Whoever wrote a part of a checkpoint has given it up by then.
  if (auto all_here = agree(training_.options.communicator, {}); !all_here) return all_here;
  training_.gate->all_are_level();
  step_->propose_smaller_micro_batch();  // rank 0 may be another one now
  checkpoints_.configure();
  if (auto there = checkpoints_.rejoin(); !there) return there;
  if (now.save) checkpoints_.save_or_warn(now.tag);
  rejoins_ = false;
  configure_communicators(training_.now);
  training_.timer.enter(Phase::boundary);
  return {};
}

Result<StateRepaired> Trainer::Loop::repair(int source) {
  if (source >= training_.world_size())  // the order was agreed on by more ranks
    return fail(ErrorKind::failed, fmt::format("guard.repair: there is no rank {} any more", source));
  if (auto levelled = level(source, training_.state); !levelled) {
    training_.is_lost(levelled.error(), training_.rank() == source ? StepGate::Interrupted::work
                                                                   : StepGate::Interrupted::state);
    return tl::unexpected(levelled.error());
  }
  if (auto copied = copy_shares(training_, *step_); !copied) {
    training_.is_lost(copied.error());
    return tl::unexpected(copied.error());
  }
  const std::int64_t step = training_.position.step;
  reporter_.log(fmt::format("step {}: all ranks have the state of rank {}", step, source));
  told_in_period_ = -1;
  training_.gate->report({.step = step, .hash = training_.state.hash()});
  return StateRepaired{step, source};
}

/// All take what `source` has of `state`: every replicated tensor, and what a checkpoint keeps besides.
Result<void> Trainer::Loop::level(int source, const StateTable& state) {
  const LevelledState mine{training_.progress(), step_->counts()};
  const auto told = level_state(training_.options.communicator, state, source, to_json(mine));
  if (!told) return tl::unexpected(told.error());
  if (training_.rank() != source) {
    LevelledState theirs;
    if (auto read = read_json(*told, theirs); !read) return read;
    training_.take_progress(theirs.progress);
    step_->take_counts(theirs.counts);
    skipped_in_row_ = theirs.counts.nonfinite_in_row;
  }
  checkpoints_.know_difference(false);
  sweep_.know_equal(training_.position.step);
  return {};
}

/// All know the evaluations that `source` knows. Where a rank is lost in the reduction of one, it ends well
/// on some ranks only; the best one decides which evaluations are saved, and all ranks save together.
Result<void> Trainer::Loop::take_evaluations(int source) {
  const LevelledState mine{training_.progress(), step_->counts()};
  const auto told = level_state(training_.options.communicator, StateTable(), source, to_json(mine));
  if (!told) return tl::unexpected(told.error());
  LevelledState theirs;
  if (auto read = read_json(*told, theirs); !read) return read;
  training_.take_progress(theirs.progress);
  return {};
}

}  // namespace footplate
