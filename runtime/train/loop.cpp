#include "runtime/train/loop.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "runtime/comm/agree.h"
#include "runtime/train/corpus_check.h"
#include "runtime/train/metrics_line.h"

namespace footplate {
namespace {

bool is_due(std::int64_t every, std::int64_t step) {
  return every > 0 && step % every == 0;
}

/// An exception of this rank alone must not keep it from the agreement that all ranks enter next.
template <class T, class Body>
Result<T> attempt(const Body& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return fail(ErrorKind::failed, explain(error));
  }
}

int cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int threads_of(const Settings& settings, int local_ranks) {
  const auto asked = static_cast<int>(settings.integer("run.threads"));
  return asked > 0 ? asked : std::max(1, cores() / local_ranks);
}

/// Overlap needs a core for each rank's communication thread: on two cores with two ranks it loses 4 %.
bool has_spare_cores(int local_ranks, int threads) {
  return cores() >= local_ranks * (threads + 1);
}

}  // namespace

Result<std::unique_ptr<Task>> make_task(const TrainerOptions& options) {
  auto made = make_task(options.settings, options.communicator.world_size(), device_of(options));
  if (made && options.wrap_task) return options.wrap_task(*std::move(made));
  return made;
}

Trainer::Loop::Loop(TrainerOptions options, std::unique_ptr<Task> task)
    : options_(std::move(options)),
      device_(device_of(options_)),
      task_name_(options_.settings.string("run.task")),
      task_(std::move(task)),
      corpus_(task_->corpus()),
      gradients_(task_->parameters(), device_),
      reducer_(task_->parameters(), gradients_, reduces_gradients()),
      optimizer_(task_->parameters(), device_),
      recorder_(device_),
      async_evaluation_([options = options_] { return make_task(options); }, &options_.progress),
      timer_(options_.progress) {
  for (const Parameter& parameter : task_->parameters())
    state_.add(state_entry("model/" + parameter.name, parameter.tensor, device_));
  optimizer_.list_state(state_);
  configure();
}

void Trainer::Loop::configure() {
  const StepSettings before = std::exchange(now_, StepSettings::from(options_.settings));
  if (!does_the_same(before, now_)) recorder_.configure(records());
  const int threads = threads_of(options_.settings, options_.local_ranks);
  // OpenMP's setting belongs to the calling thread: set by the training thread, again in run().
  at::set_num_threads(threads);
  choose_attention(now_.attention);
  task_->recompute(now_.gradient_checkpointing);
  const bool overlap = now_.overlap == Overlap::on ||
                       (now_.overlap == Overlap::automatic && options_.communicator.world_size() > 1 &&
                        (!device_.is_host() || has_spare_cores(options_.local_ranks, threads)));
  // Of a recorded backward pass nobody hears when a gradient is there.
  reducer_.configure(now_.bucket_mb, overlap && !records());
  options_.communicator.set_chunk_elements(now_.chunk_elements);
  // A million elements are good for MPI; over NCCL each piece is a launch on the device.
  const bool goes_by_size =
      options_.gradients != nullptr && options_.settings.source("comm.chunk_elements") == "default";
  reduces_gradients().set_chunk_elements(goes_by_size ? 0 : now_.chunk_elements);
}

Result<Ending> Trainer::Loop::run(StepGate& gate) {
  gate_ = &gate;
  device_.enter_thread();
  configure();
  tell_computing();
  tell_other_corpus();
  timer_.enter(Phase::boundary);
  while (gate.enter(step_) == StepGate::Verdict::train) {
    const auto trained = options_.before_step ? options_.before_step(step_) : Result<void>();
    const Result<bool> done = trained ? train_step() : tl::unexpected(trained.error());
    if (done && *done) after_step();
    if (!done && !is_lost(done.error())) return tl::unexpected(done.error());
    timer_.enter(Phase::boundary);
  }
  return end();
}

/// Whether it is a lost rank, and the run can go on without: then the next enter() brings this rank level.
/// The step, evaluation or save that came to nothing has changed no state.
bool Trainer::Loop::is_lost(const Error& error, StepGate::Interrupted what, const std::string& tag) {
  if (error.kind != ErrorKind::lost || gate_ == nullptr || !gate_->lost(what, tag)) return false;
  lost_ = true;
  return true;
}

void Trainer::Loop::after_step() {
  timer_.enter(Phase::boundary);
  tell_refusal();
  if (is_due(now_.log_every, step_)) log_step();
  evaluate_if_due();
  if (is_due(now_.ckpt_every, step_)) save_and_record();
  if (is_due(now_.check_every, step_) && options_.communicator.world_size() > 1)
    gate_->report_state_hash(step_, state_.hash());
  if (is_due(now_.empty_cache_every, step_)) device_.empty_cache();
}

Ending Trainer::Loop::end() {
  timer_.enter(Phase::ending);
  const Ending ending = gate_->ending();
  for (;;) {
    lost_ = false;
    save_and_evaluate(ending);
    if (!lost_) break;
    gate_->enter(step_);  // which brings those who are left together, and ends again
    timer_.enter(Phase::ending);
  }
  timer_.enter(Phase::ended);
  return ending;
}

void Trainer::Loop::save_and_evaluate(const Ending& ending) {
  const bool finished = ending.reason == "done";
  // Saved first: whatever ends the process during a long evaluation then costs no step.
  // One that is there already isn't written again: the saver knows.
  if (ending.save || (finished && now_.ckpt_every > 0)) save_and_record();
  if (lost_) return;
  if (finished)
    finish_evaluation();
  else
    give_up_evaluation("the run ends");
  // On everything held out, unless that was the last evaluation's choice anyway.
  const bool evaluated = evaluated_at_ == step_ && now_.eval_batches == 0;
  if (finished && now_.eval_at_end && !evaluated) evaluate_and_record(0);
}

std::vector<Moved> Trainer::Loop::settings_changed(const Settings& now, std::int64_t step) {
  const double before = learning_rate(now_.schedule, step);
  options_.settings = now;
  configure();
  tell_computing();
  const double after = learning_rate(now_.schedule, step);
  if (before == after) return {};
  return {{"optim.lr", before, after}};
}

/// At the start, and where an order changes it: the kernel is LibTorch's choice, by shapes and precision.
void Trainer::Loop::tell_computing() {
  const std::string attention = task_->attention(now_.precision);
  std::string text = fmt::format("computes in {} on {}", now_.precision == Precision::bf16 ? "bf16" : "fp32",
                                 device_.description());
  if (!attention.empty()) text += "; attention: " + attention;
  if (now_.gradient_checkpointing)
    text += task_->can_recompute()
                ? "; backward computes activations once more (train.gradient_checkpointing)"
                : "; train.gradient_checkpointing changes nothing: run.task = \"" + task_name_ +
                      "\" keeps no activations";
  if (now_.cuda_graph) {
    const std::string why = cant_record();
    text += why.empty() ? "; steps are recorded (train.cuda_graph)"
                        : "; train.cuda_graph changes nothing: " + why;
  }
  if (rank() == 0 && text != computing_) log(text);
  computing_ = text;
}

/// Not in load(), which has no gate.
void Trainer::Loop::tell_other_corpus() {
  const std::string text = std::exchange(other_corpus_, "");
  if (text.empty() || rank() != 0) return;
  log(text);
  publish("warn", {{"kind", "corpus"}, {"step", step_}, {"text", text}});
}

std::string Trainer::Loop::cant_record() const {
  if (!device_.can_record()) return device_.description() + " can't record a step, a CUDA device can";
  if (!task_->can_be_recorded()) return "run.task = \"" + task_name_ + "\" reads its data while it computes";
  return "";
}

double Trainer::Loop::peak_tflops() const {
  return now_.peak_tflops > 0 ? now_.peak_tflops : device_.peak_tflops(now_.precision).value_or(0);
}

void Trainer::Loop::tell_refusal() {
  const auto why = recorder_.take_refusal();
  if (!why) return;
  const std::string text =
      fmt::format("step {}: rank {} can't record its steps (train.cuda_graph), and goes on without: {}",
                  step_, rank(), *why);
  log(text);
  publish("warn", {{"kind", "cuda_graph"}, {"step", step_}, {"text", text}});
}

void Trainer::Loop::log_step() {
  if (rank() == 0) {
    TrainMetrics metrics;
    metrics.loss = static_cast<double>(sums_.loss) / static_cast<double>(sums_.tokens);
    metrics.learning_rate = learning_rate_;
    metrics.epoch = static_cast<double>(samples_drawn_) / task_->samples_per_epoch();
    metrics.grad_norm = grad_norm_;
    metrics.steps = steps_since_line_;
    metrics.tokens = tokens_since_line_;
    metrics.nonfinite = nonfinite_;
    metrics.flops_per_token = task_->flops_per_token();
    metrics.peak_tflops = peak_tflops() * options_.communicator.world_size();
    metrics.memory = device_.memory();
    write(train_line(step_, metrics, timer_));
  }
  timer_.reset();
  device_.forget_peak();
  steps_since_line_ = tokens_since_line_ = 0;
}

EvalPlan Trainer::Loop::evaluation_plan(std::int64_t batches) const {
  return {batches, now_.eval_batch_size, now_.eval_mode, now_.precision};
}

/// For the evaluation of the parameters after `step`.
EvalPorts Trainer::Loop::evaluation_ports(std::int64_t step) const {
  return {
      [this, step] { return options_.progress.is_cancelled(step) || (gate_ != nullptr && gate_->abandon()); },
      [this] {
        if (gate_ == nullptr || options_.communicator.world_size() == 1) return Result<void>();
        return gate_->meet("the reduction of an evaluation", now_.eval_meet_timeout);
      }};
}

Result<EvalResult> Trainer::Loop::evaluate_held_out(std::int64_t batches) {
  timer_.enter(Phase::evaluation);
  if (now_.eval_mode == EvalMode::one && options_.communicator.world_size() > 1)
    log(rank() == 0 ? "rank 0 evaluates, the others wait" : "waiting for rank 0 to evaluate");
  options_.progress.evaluates_now(step_);
  auto result =
      explained(evaluate(*task_, options_.communicator, evaluation_plan(batches), evaluation_ports(step_)));
  options_.progress.evaluates_now(std::nullopt);
  timer_.enter(Phase::boundary);
  if (batches == now_.eval_batches) note_best(step_, result);
  return result;
}

/// What a loss of the communicator ended is told with its reason, where control knows one.
Result<EvalResult> Trainer::Loop::explained(Result<EvalResult> result) {
  if (result || !is_lost(result.error())) return result;
  const std::string why = gate_->interruption();
  if (why.empty()) return result;
  return fail(ErrorKind::timed_out, "evaluation skipped: " + why);
}

/// Of evaluations on eval.batches alone, as it was when they began: another choice of samples has another
/// loss.
void Trainer::Loop::note_best(std::int64_t step, const Result<EvalResult>& result) {
  if (!result || result->partial() || result->loss >= best_eval_loss_) return;
  know_best(result->loss, step);
}

void Trainer::Loop::know_best(double loss, std::int64_t step) {
  best_eval_loss_ = loss;
  best_eval_at_ = step;
  options_.progress.evaluated_best(loss);
}

Json Trainer::Loop::describe(std::int64_t step, const EvalResult& result) const {
  Json data = {{"step", step},
               {"loss", number_to_json(result.loss)},
               {"tokens", result.tokens},
               {"batches", result.batches},
               {"seconds", result.seconds},
               {"best", number_to_json(best_eval_loss_)}};
  if (result.retries > 0) data.update({{"retries", result.retries}, {"reason", result.reason}});
  if (result.partial()) data.update({{"partial", true}, {"batches_wanted", result.batches_wanted}});
  return data;
}

/// What was started is finished first: the one that is due may then begin.
void Trainer::Loop::evaluate_if_due() {
  if (async_evaluation_.under_way() &&
      sums_.evaluations_ready == static_cast<float>(options_.communicator.world_size()))
    finish_evaluation();
  if (!is_due(now_.eval_every, step_)) return;
  if (now_.eval_async)
    start_evaluation();
  else
    evaluate_and_record(now_.eval_batches);
}

void Trainer::Loop::evaluate_and_record(std::int64_t batches) {
  if (now_.eval_mode == EvalMode::off) return;
  lost_ = false;
  const auto result = evaluate_held_out(batches);
  if (result) evaluated_at_ = step_;
  record(step_, result);
}

/// Training goes on at once. All ranks start, leave out and finish at the same steps.
void Trainer::Loop::start_evaluation() {
  if (now_.eval_mode == EvalMode::off) return;
  if (!async_evaluation_.under_way()) {
    evaluation_left_out_ = false;
    async_evaluation_.start(step_, task_->parameters(), options_.communicator,
                            evaluation_plan(now_.eval_batches));
    return;
  }
  if (std::exchange(evaluation_left_out_, true)) return;
  const std::string text = fmt::format(
      "step {}: no evaluation, that of step {} is still under way; eval.every is shorter than one takes",
      step_, async_evaluation_.step());
  if (rank() == 0) log(text);
  publish("warn", {{"kind", "evaluation"}, {"step", step_}, {"text", text}});
}

void Trainer::Loop::finish_evaluation() {
  if (!async_evaluation_.under_way()) return;
  timer_.enter(Phase::evaluation);
  const std::int64_t step = async_evaluation_.step();
  const auto result = explained(async_evaluation_.finish(options_.communicator, evaluation_ports(step)));
  timer_.enter(Phase::boundary);
  if (result) evaluated_at_ = step;
  note_best(step, result);
  record(step, result);
}

void Trainer::Loop::give_up_evaluation(const char* why) {
  if (!async_evaluation_.under_way()) return;
  async_evaluation_.give_up();
  const std::string text = fmt::format("step {}: the evaluation of step {} was given up: {}", step_,
                                       async_evaluation_.step(), why);
  if (rank() == 0) log(text);
  publish("warn", {{"kind", "evaluation"}, {"step", step_}, {"text", text}});
}

void Trainer::Loop::record(std::int64_t step, const Result<EvalResult>& result) {
  if (!result) {
    const std::string text = fmt::format("step {}: {}", step, result.error().message);
    if (rank() == 0) log(text);
    if (result.error().kind == ErrorKind::refused) {  // given up on purpose
      publish("warn", {{"kind", "evaluation"}, {"step", step}, {"text", text}});
      return;
    }
    write(eval_failed_line(step, result.error()));
    publish("eval", {{"step", step}, {"failed", true}, {"reason", result.error().message}});
    return;
  }
  write(eval_line(step, *result, best_eval_loss_));
  publish("eval", describe(step, *result));
  if (rank() != 0) return;
  std::string text = fmt::format("step {}: held-out loss {:.4f}", step, result->loss);
  if (std::isfinite(best_eval_loss_)) text += fmt::format(", best {:.4f}", best_eval_loss_);
  text += fmt::format(", {:.1f} s", result->seconds);
  if (result->partial())
    text += fmt::format("; partial, {} of {} batches", result->batches, result->batches_wanted);
  if (result->retries > 0) text += fmt::format("; retry {}, after {}", result->retries, result->reason);
  log(text);
}

Result<Json> Trainer::Loop::evaluate_now(std::optional<std::int64_t> batches) {
  if (now_.eval_mode == EvalMode::off)
    return fail(ErrorKind::refused, "eval.mode is \"off\"; set it to \"all\" or \"one\" first");
  const auto result = evaluate_held_out(batches.value_or(now_.eval_batches));
  record(step_, result);
  if (!result) return tl::unexpected(result.error());
  return describe(step_, *result);
}

Error Trainer::Loop::lost_in_save() {
  return {ErrorKind::lost, "a rank was lost during the save; it is made again without that rank"};
}

/// Rank 0's state is what a checkpoint has. Where most ranks agree on another one, it isn't kept: a run that
/// went on from it would have that state on all ranks, and nothing to compare it with. Errors: failed, the
/// same on all ranks; lost.
Result<void> Trainer::Loop::check_rank_0() {
  const int ranks = options_.communicator.world_size();
  if (ranks < 3 || now_.check_every == 0) return {};  // two have no majority
  auto mine = static_cast<std::int64_t>(state_.hash());
  std::vector<std::int64_t> all(static_cast<std::size_t>(ranks));
  if (auto gathered =
          options_.communicator
              .all_gather({&mine, 1, DataType::int64}, {all.data(), ranks, DataType::int64}, "state hashes")
              ->wait();
      !gathered)
    return gathered;
  for (int rank = 1; rank < ranks; ++rank) {
    const std::int64_t other = all[static_cast<std::size_t>(rank)];
    if (other == all.front() || 2 * std::count(all.begin(), all.end(), other) <= ranks) continue;
    return fail(ErrorKind::failed,
                fmt::format("rank 0's state differs from that of most ranks, and is not saved; "
                            "guard.repair{{ source = {} }} gives all ranks theirs",
                            rank));
  }
  return {};
}

Result<Json> Trainer::Loop::save(const std::string& tag) {
  if (options_.saver == nullptr)
    return fail(ErrorKind::refused, "this run has nowhere to save checkpoints to");
  const auto start = Progress::Clock::now();
  timer_.enter(Phase::saving);
  if (auto sound = check_rank_0(); !sound) {
    timer_.enter(Phase::boundary);
    if (is_lost(sound.error(), StepGate::Interrupted::save, tag)) return tl::unexpected(lost_in_save());
    return tl::unexpected(sound.error());
  }
  const Json progress = this->progress();
  const auto saved = attempt<Saved>([&] {
    return options_.saver->save({step_, tag, state_, options_.settings, progress, best_eval_at_ == step_});
  });
  const auto agreed = agree(options_.communicator, saved ? Result<void>() : tl::unexpected(saved.error()));
  timer_.enter(Phase::boundary);
  if (!agreed) {
    if (is_lost(agreed.error(), StepGate::Interrupted::save, tag)) return tl::unexpected(lost_in_save());
    return tl::unexpected(agreed.error());
  }
  const bool same = saved->bytes == 0 && last_checkpoint_ == saved->path;  // of rank 0, which alone tells it
  last_checkpoint_ = saved->path;
  const std::chrono::duration<double> seconds = Progress::Clock::now() - start;
  Json result = {
      {"path", saved->path}, {"step", step_}, {"seconds", seconds.count()}, {"bytes", saved->bytes}};
  if (!tag.empty()) result["tag"] = tag;
  if (same) return result;
  publish("ckpt", result);
  if (rank() == 0) log(fmt::format("step {}: saved {} in {:.1f} s", step_, saved->path, seconds.count()));
  return result;
}

void Trainer::Loop::save_and_record(const std::string& tag) {
  if (options_.saver == nullptr) return;
  const auto saved = save(tag);
  if (saved || rank() != 0) return;
  // The run goes on: the checkpoints before this one are still there.
  const std::string text = fmt::format("step {}: no checkpoint: {}", step_, saved.error().message);
  log(text);
  publish("warn", {{"step", step_}, {"text", text}});
}

Result<void> Trainer::Loop::load(const std::string& checkpoint) {
  if (options_.saver == nullptr)
    return fail(ErrorKind::refused, "this run has nowhere to load checkpoints from");
  const auto progress = attempt<Json>([&] { return options_.saver->load(checkpoint, state_); });
  if (auto agreed =
          agree(options_.communicator, progress ? Result<void>() : tl::unexpected(progress.error()));
      !agreed)
    return agreed;
  take_progress(*progress);
  other_corpus_ = other_corpus(*progress, corpus_);
  last_checkpoint_ = checkpoint;
  options_.progress.at_step(step_);
  if (rank() == 0) log(fmt::format("going on from step {} of {}", step_, checkpoint));
  return {};
}

/// What a checkpoint keeps besides the state table.
Json Trainer::Loop::progress() const {
  return {{"step", step_},
          {"samples_drawn", samples_drawn_},
          {"best_eval_loss", number_to_json(best_eval_loss_)},
          {"best_eval_at", best_eval_at_},
          {"evaluated_at", evaluated_at_},
          {"corpus", to_json(corpus_)}};
}

void Trainer::Loop::take_progress(const Json& progress) {
  step_ = progress.at("step").get<std::int64_t>();
  samples_drawn_ = progress.at("samples_drawn").get<std::int64_t>();
  know_best(number_from_json(progress.at("best_eval_loss")).value_or(kNoEvaluation),
            progress.value("best_eval_at", std::int64_t{-1}));
  evaluated_at_ = progress.at("evaluated_at").get<std::int64_t>();
}

Result<void> Trainer::Loop::rejoin(const Rejoin& now) {
  give_up_evaluation("communicators were made anew");
  if (auto there = options_.communicator.rejoin(now.generation, now.sequence); !there) return there;
  if (options_.gradients != nullptr)
    if (auto there = options_.gradients->rejoin(now.generation, now.sequence); !there) return there;
  options_.local_ranks = now.local_ranks;
  if (options_.saver != nullptr) options_.saver->moved_to(rank(), options_.communicator.world_size());
  if (now.level)
    if (auto levelled = level(now.source); !levelled) return levelled;
  configure();
  log(fmt::format("step {}: going on as rank {} of {}", step_, rank(), options_.communicator.world_size()));
  gate_->report_state_hash(step_, state_.hash());
  if (smaller_micro_batch_ > 0) propose_smaller_micro_batch();  // rank 0 may be another one now
  if (now.save) save_and_record(now.tag);
  timer_.enter(Phase::boundary);
  return {};
}

Result<Json> Trainer::Loop::repair(int source) {
  if (source >= options_.communicator.world_size())  // the order was agreed on by more ranks
    return fail(ErrorKind::failed, fmt::format("guard.repair: there is no rank {} any more", source));
  if (auto levelled = level(source); !levelled) {
    is_lost(levelled.error(), rank() == source ? StepGate::Interrupted::work : StepGate::Interrupted::state);
    return tl::unexpected(levelled.error());
  }
  log(fmt::format("step {}: all ranks have the state of rank {}", step_, source));
  gate_->report_state_hash(step_, state_.hash());
  return Json{{"step", step_}, {"source", source}};
}

/// All take the state of `source`: every persistent tensor, and what a checkpoint keeps besides.
Result<void> Trainer::Loop::level(int source) {
  Communicator& communicator = options_.communicator;
  const Json mine = {{"progress", progress()},
                     {"nonfinite", nonfinite_},
                     {"nonfinite_in_row", nonfinite_in_row_},
                     {"last_checkpoint", last_checkpoint_}};
  const auto theirs = from_rank(communicator, source, to_line(mine));
  if (!theirs) return tl::unexpected(theirs.error());
  std::vector<std::byte> room;
  for (const StateEntry& entry : state_.entries()) {
    void* data = entry.data;
    if (entry.memory != nullptr) {
      room.resize(entry.bytes);
      if (rank() == source) entry.on_host(room);
      data = room.data();
    }
    const Buffer buffer{data, static_cast<std::int64_t>(entry.bytes), DataType::uint8};
    if (auto sent = communicator.broadcast(buffer, source, "levelling")->wait(); !sent) return sent;
    if (entry.memory != nullptr && rank() != source) entry.take(data);
  }
  if (rank() == source) return {};
  const Json said = Json::parse(*theirs);
  take_progress(said.at("progress"));
  nonfinite_ = said.at("nonfinite");
  nonfinite_in_row_ = said.at("nonfinite_in_row");
  last_checkpoint_ = said.at("last_checkpoint");
  return {};
}

void Trainer::Loop::write(Json line) {
  if (rank() != 0) return;
  line["branch"] = options_.branch;
  if (options_.sink != nullptr) options_.sink->write(line);
  publish("metrics", line);
}

void Trainer::Loop::publish(const char* topic, const Json& data) {
  if (rank() == 0 && gate_ != nullptr) gate_->publish(topic, data);
}

void Trainer::Loop::log(const std::string& text) const {
  if (options_.log) options_.log(text);
}

}  // namespace footplate
