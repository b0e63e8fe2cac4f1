#include "runtime/train/train_step.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "runtime/base/cores.h"
#include "runtime/comm/agree.h"
#include "runtime/train/buffer_reducer.h"
#include "runtime/train/reporter.h"
#include "runtime/train/sum_of_squares.h"
#include "runtime/watch/event_parts.h"

namespace footplate {
namespace {

/// Keeps the clipping factor finite where all gradients are zero.
constexpr double kClipEpsilon = 1e-6;

/// So many steps in a row that aren't finite end the run: what is wrong won't go away by itself.
constexpr std::int64_t kMostNonfinite = 3;

/// Batches are loaded ahead of no more steps than that, where each has few.
constexpr int kMostStepsAhead = 256;

/// As many as PyTorch's users take, where there are cores for them.
constexpr int kMostWorkers = 16;

int threads_of(const TrainerOptions& options) {
  const auto asked = static_cast<int>(options.settings.integer("run.threads"));
  return asked > 0 ? asked : std::max(1, usable_cores() / options.local_ranks);
}

/// data.workers; on their own: a device leaves all cores of the rank, the processors those that run.threads
/// leaves.
int workers_of(const TrainerOptions& options, const StepSettings& now) {
  if (now.workers >= 0) return static_cast<int>(now.workers);
  const bool on_host = options.device == nullptr || options.device->is_host();
  const int spare = usable_cores() / options.local_ranks - (on_host ? threads_of(options) : 0);
  return std::clamp(spare, 0, kMostWorkers);
}

/// Overlap needs a core for each rank's communication thread: on two cores with two ranks it loses 4 %.
bool has_spare_cores(const TrainerOptions& options) {
  return usable_cores() >= options.local_ranks * (threads_of(options) + 1);
}

/// A process that joins makes no step before it is given its share.
KeptGradients kept_gradients(const Training& training) {
  const bool joins = training.options.joins && training.sharding().stage > 1;
  return joins || training.shares_gradients() ? KeptGradients::share : KeptGradients::all;
}

/// Nothing: each has all of the optimizer's state.
std::unique_ptr<StepShare> share_of(const Training& training, GradientBuffer& gradients) {
  if (!training.is_sharded()) return nullptr;
  // Ranks of one host may be lost together.
  const int copies_from =
      training.has_copies() ? distance_of_copies(training.options.communicator.host_numbers()) : 0;
  return std::make_unique<StepShare>(training.task->parameters(), gradients,
                                     training.gradients_communicator(), copies_from);
}

/// Nothing: all.
std::optional<KeptShares> kept_by(const Training& training, const GradientBuffer& gradients,
                                  const StepShare* share) {
  if (share != nullptr) return share->kept();
  if (!training.options.joins || training.sharding().stage == 0) return std::nullopt;
  // A process that joins has nothing until it is given its share: all of it may be too much for one.
  KeptShares nothing;
  nothing.mine.layout = &gradients.layout();
  return nothing;
}

std::vector<double> doubles_of(const at::Tensor& tensor) {
  const at::Tensor on_host = tensor.to(at::kDouble).cpu();
  const auto* first = on_host.const_data_ptr<double>();
  return {first, first + on_host.numel()};
}

}  // namespace

TrainStep::TrainStep(Training& training, const Reporter& reporter, std::unique_ptr<OptimizerShare> has)
    : training_(training),
      reporter_(reporter),
      gradients_(training.task->parameters(), training.device,
                 training.task->sums().size() + ForwardState::elements_of(training.task->state()),
                 training.is_sharded() ? training.world_size() : 1, kept_gradients(training)),
      loader_(*training.task),
      task_sums_(training.task->sums(), task_row(), /*statistics=*/true),
      forward_state_(training.task->state(),
                     gradients_.others().narrow(0, training.task->sums().size(),
                                                ForwardState::elements_of(training.task->state()))),
      share_(share_of(training, gradients_)),
      reducer_(share_ ? share_->make_reducer(training.timer)
                      : std::make_unique<BufferReducer>(training.task->parameters(), gradients_,
                                                        training.gradients_communicator(), Reduction::all)),
      optimizer_(std::move(has)),
      recorder_(training.device) {
  const HostedTask& task = *training.task;
  const auto kept = kept_by(training, gradients_, share_.get());
  if (optimizer_ != nullptr)
    optimizer_->take_gradients(task.parameters(), task.groups(), kept);
  else
    optimizer_ = std::make_unique<OptimizerShare>(OptimizerSettings::from(training.options.settings).kind,
                                                  task.parameters(), task.groups(), training.device, kept);
  optimizer_->list_state(training.state);
  if (training.task->sums().has_several_sets())
    since_taken_ = at::zeros({training.task->sums().measured()},
                             at::TensorOptions(at::kDouble).device(training.device.where()));
}

void TrainStep::configure(const StepSettings& before) {
  const StepSettings& now = training_.now;
  const TrainerOptions& options = training_.options;
  loaded_ahead_.reset();  // load() may read what has changed
  loader_.configure(workers_of(options, now), static_cast<int>(now.prefetch));
  if (auto shares = training_.task->shares(options.settings)) shares_ = *std::move(shares);
  if (since_taken_.defined() && !before.log_sets_every.is_ever()) since_taken_.zero_();
  const bool records = training_.records();
  if (!does_the_same(before, now)) recorder_.configure(records);
  // OpenMP's setting belongs to the calling thread: set by the training thread, again in run().
  at::set_num_threads(threads_of(options));
  choose_attention(now.attention);
  training_.task->recompute(now.gradient_checkpointing);
  const bool overlap =
      now.overlap == Overlap::on || (now.overlap == Overlap::automatic && training_.world_size() > 1 &&
                                     (!training_.device.is_host() || has_spare_cores(options)));
  // Of a recorded backward pass nobody hears when a gradient is there.
  reducer_->configure(now.bucket_mb, overlap && !records);
  torch::autograd::AnomalyMode::set_enabled(now.anomaly);
}

void TrainStep::compute_gradients() {
  failure_.clear();
  smaller_micro_batch_ = 0;
  reducer_->begin_step(most_passes());  // also where this rank fails it takes part in all of them
  try {
    accumulate_gradients();
  } catch (const std::exception& error) {
    if (training_.device.failure()) throw;  // it can't take part in anything
    // This rank still takes part in the reduction: its status tells the others, none of them hangs.
    failure_ = training_.device.explain(error);
    if (failure_.empty()) failure_ = "unknown error";
    gradients_.mine().failed_ranks = 1;
    gradients_.mine().out_of_memory_ranks = is_out_of_memory(error) ? 1 : 0;
  } catch (...) {
    failure_ = kThrewNoException;
    gradients_.mine().failed_ranks = 1;
  }
}

void TrainStep::accumulate_gradients() {
  training_.timer.enter(Phase::data);
  gradients_.zero();
  forward_state_.keep();
  learning_rate_ = training_.learning_rate(training_.position.step);
  const StepSamples step = samples_after(training_.position.sets);
  std::vector<Draws> parts = parts_of(step);
  const std::size_t now = parts.size();
  add_coming(step, parts);
  for (std::size_t i = 0; i < now; ++i) {
    const bool is_there = loaded_ahead_ && loaded_ahead_->first == parts[i];
    loader_.expect(std::span(parts).subspan(is_there ? i + 1 : i));
    forward_backward(parts[i], i + 1 == now);
  }
}

/// Those of the steps after `step`, as far as batches are loaded ahead.
void TrainStep::add_coming(const StepSamples& step, std::vector<Draws>& parts) const {
  const std::size_t wanted = parts.size() + loader_.room();
  StepSamples next = step;
  // A rank may have no samples in a step, not in all of them.
  for (int steps = 0; parts.size() < wanted && steps < kMostStepsAhead; ++steps) {
    next = samples_after(next.after);
    const std::vector<Draws> more = parts_of(next);
    parts.insert(parts.end(), more.begin(), more.end());
  }
}

/// Of all ranks, where the data sets are so far.
StepSamples TrainStep::samples_after(const std::vector<SetPosition>& sets) const {
  return samples_of_step(sets, training_.now.batch_size, shares_);
}

/// What this rank takes of them, in the pieces that go through the model at once.
std::vector<Draws> TrainStep::parts_of(const StepSamples& step) const {
  return draws_of_rank(step, training_.rank(), training_.world_size(), training_.now.micro_batch,
                       training_.now.data_offset);
}

/// Of the rank that has most. All gradients are reduced once a step.
int TrainStep::most_passes() const {
  if (gradients_.kept() == KeptGradients::all) return 1;
  return static_cast<int>(
      most_draws(samples_after(training_.position.sets), training_.world_size(), training_.now.micro_batch));
}

void TrainStep::forward_backward(const Draws& draws, bool last) {
  PhaseTimer& timer = training_.timer;
  timer.enter(Phase::data);
  const v1::Batch batch = load(draws);
  gradients_.mine().tokens += static_cast<float>(batch.weight);
  task_sums_.begin(batch);
  timer.enter(Phase::forward);
  training_.task->seed(draws);
  reducer_->expect_backward(last);
  // What a recording captures is the work: of the batch it has the tensors, each time others.
  const std::string name = fmt::format("forward and backward of data set {}", batch.set);
  recorder_.run(name, batch.tensors, [this, &timer, batch](const auto& inputs) {
    v1::Batch now = batch;
    now.tensors = inputs;
    at::Tensor loss;
    {
      const MixedPrecision precision(training_.precision(), training_.device.where());
      loss = training_.task->loss(now, task_sums_).reshape({});
    }
    gradients_.loss().add_(loss.detach());
    task_sums_.add_loss(loss.detach());
    timer.enter(Phase::backward);
    loss.backward();
  });
  reducer_->backward_done();
}

v1::Batch TrainStep::load(const Draws& draws) {
  const auto ahead = std::exchange(loaded_ahead_, std::nullopt);
  if (ahead && ahead->first == draws) return ahead->second;
  return training_.task->on_device(draws, loader_.take(draws));
}

/// Where that step turns out to begin with something else, it loads that. The processors would only do it
/// sooner; a thread that is still at it isn't waited for.
void TrainStep::load_ahead() {
  if (training_.device.is_host()) return;
  const StepSamples now = samples_after(training_.position.sets);
  const std::vector<Draws> parts = parts_of(samples_after(now.after));
  training_.timer.enter(Phase::data);
  loaded_ahead_.reset();
  if (parts.empty() || !loader_.is_ready(parts.front())) return;
  try {
    loaded_ahead_ = {parts.front(), training_.task->on_device(parts.front(), loader_.take(parts.front()))};
  } catch (...) {
    // The step that needs it tries again, and says why it fails.
  }
}

Result<void> TrainStep::reduce(const OfThisRank& of_this_rank) {
  training_.timer.enter(Phase::reduce);
  if (of_this_rank.evaluation_ready) gradients_.mine().evaluations_ready = 1;
  if (of_this_rank.saves) gradients_.mine().saves_under_way = 1;
  if (training_.rank() == 0) gradients_.mine().due = of_this_rank.due;
  auto& bits = gradients_.mine().state_bits;
  for (std::size_t bit = 0; of_this_rank.state_hash && bit < bits.size(); ++bit)
    bits[bit] = static_cast<float>(*of_this_rank.state_hash >> bit & 1U);
  gradients_.publish();
  forward_state_.publish(failure_.empty() && gradients_.mine().tokens > 0);
  auto reduced = reducer_->finish();
  if (reduced && share_) reduced = share_->reduce_sums();
  if (!reduced) forward_state_.put_back();  // a step that isn't done has changed nothing
  return reduced;
}

Result<void> TrainStep::update() {
  training_.timer.enter(Phase::optimizer);
  outcome_.learning_rate = learning_rate_;
  optimizer_->set_learning_rate(outcome_.learning_rate);
  recorder_.run("update", {}, [this](const auto& /*inputs*/) {
    update_parameters();
    if (!share_) update_task({task_row(), skip_, training_.position.step});
  });
  if (!share_) return {};
  training_.timer.enter(Phase::reduce);
  if (auto gathered = share_->gather(); !gathered) {
    pending_ = {task_row().clone(), skip_.clone(), training_.position.step};
    return gathered;
  }
  training_.timer.enter(Phase::optimizer);
  update_task({task_row(), skip_, training_.position.step});
  return {};
}

/// Enqueued before the host knows what the step has come to: where a rank failed, or anything isn't finite,
/// nothing is written. The sums are the same on all ranks, so what comes of it is. The mean over all tokens
/// and the clipping are one divisor, applied by the optimizer's own pass. The norm is one pass over the
/// gradients: 4 bytes read for each parameter, where the optimizer's pass moves about 30. Also without
/// clipping: anything that isn't finite shows in it.
void TrainStep::update_parameters() {
  const at::NoGradGuard no_grad;
  const at::Tensor sums = gradients_.sums().to(at::kDouble);
  const auto sum = [&](std::size_t offset) {
    return sums.select(0, static_cast<std::int64_t>(offset / sizeof(float)));
  };
  at::Tensor divisor = sum(offsetof(StepSums, tokens));
  const at::Tensor norm_of_sums = share_ ? share_->norm() : sum_of_squares(gradients_.gradients()).sqrt();
  norm_ = norm_of_sums.div(divisor);
  const at::Tensor is_sound = norm_.isfinite()
                                  .logical_and(sum(offsetof(StepSums, loss)).isfinite())
                                  .logical_and(sum(offsetof(StepSums, failed_ranks)).eq(0));
  const double clip_norm = training_.now.clip_norm;
  if (clip_norm > 0) divisor = divisor.mul(norm_.add(kClipEpsilon).div(clip_norm).clamp_min(1));
  divisor_ = divisor.to(at::kFloat);
  skip_ = is_sound.logical_not().to(at::kFloat);
  optimizer_->step(training_.now.optimizer, divisor_, skip_);
  forward_state_.conclude(skip_);
}

void TrainStep::update_task(const TaskUpdate& update) {
  const at::NoGradGuard no_grad;
  training_.task->update(update.row, update.skip, update.step);
}

void TrainStep::make_pending_update() {
  if (const auto update = std::exchange(pending_, std::nullopt)) update_task(*update);
}

Result<bool> TrainStep::conclude() {
  outcome_.sums = gradients_.fetch();
  outcome_.grad_norm = norm_.item<double>();
  if (outcome_.sums.failed_ranks > 0) return after_failure();
  if (std::isfinite(outcome_.grad_norm) && std::isfinite(outcome_.sums.loss)) {
    nonfinite_in_row_ = 0;
    if (since_taken_.defined() && training_.now.log_sets_every.is_ever()) since_taken_.add_(measured());
  } else if (auto counted = count_nonfinite(); !counted) {
    return tl::unexpected(counted.error());
  }
  training_.position.sets = samples_after(training_.position.sets).after;
  ++training_.position.step;
  return true;
}

bool TrainStep::states_differ() const {
  const auto all = static_cast<float>(training_.world_size());
  return std::ranges::any_of(outcome_.sums.state_bits, [all](float sum) { return sum != 0 && sum != all; });
}

std::map<std::string, double> TrainStep::metrics_of_task() const {
  const SumsLayout& layout = training_.task->sums();
  if (layout.measured() == 0) return {};
  const auto weight = static_cast<double>(outcome_.sums.tokens);
  return layout.metrics_of(doubles_of(measured()), weight).all.declared;
}

std::vector<SetMetrics> TrainStep::take_set_metrics() {
  const auto sums = doubles_of(since_taken_);
  since_taken_.zero_();
  return training_.task->sums().metrics_of(sums, /*weight=*/1).sets;
}

/// All ranks know of it by the sums, and nobody has written anything.
Result<bool> TrainStep::after_failure() {
  const auto reasons = gather_reasons(training_.options.communicator, failure_);
  if (!reasons && reasons.error().kind == ErrorKind::lost) return tl::unexpected(reasons.error());
  const std::string why = reasons ? *reasons : reasons.error().message;
  const StepSums& sums = outcome_.sums;
  if (reasons && sums.out_of_memory_ranks == sums.failed_ranks && try_with_less_memory(why)) return false;
  failed_together_ = reasons.has_value();
  const std::int64_t step = training_.position.step;
  return fail(ErrorKind::failed,
              fmt::format("step {} failed: {}; parameters are as step {} left them", step, why, step));
}

/// Half as many samples at once, accumulated to the same batch: all ranks stand until that order applies,
/// which lets them go on. False: there is nothing left to halve.
bool TrainStep::try_with_less_memory(const std::string& reasons) {
  const StepSettings& now = training_.now;
  const std::int64_t step = training_.position.step;
  const std::int64_t world = training_.world_size();
  const std::int64_t slice = (now.batch_size + world - 1) / world;  // the largest of all ranks
  const std::int64_t most = now.micro_batch > 0 ? std::min(now.micro_batch, slice) : slice;
  if (most < 2) return false;
  smaller_micro_batch_ = (most + 1) / 2;
  loaded_ahead_.reset();
  recorder_.configure(training_.records());  // what was recorded holds memory
  training_.device.empty_cache();
  const std::string text = fmt::format(
      "step {}: {}; nothing has changed. It is tried again with {} sequences of a rank at once, {} before "
      "(train.micro_batch); the batch stays {}",
      step, reasons, smaller_micro_batch_, most, now.batch_size);
  reporter_.say(text);
  Warning warning = warning_at(WarningKind::memory, step, text);
  warning.setting = "train.micro_batch";
  warning.value = smaller_micro_batch_;
  reporter_.publish(std::move(warning));
  training_.gate->pause();
  propose_smaller_micro_batch();
  return true;
}

void TrainStep::propose_smaller_micro_batch() const {
  if (smaller_micro_batch_ == 0 || training_.rank() != 0) return;
  Order order;
  order.source = "-- out of memory";
  order.changes = {{"train.micro_batch", smaller_micro_batch_, std::nullopt}};
  order.calls = {{"run.resume", Json::object()}};
  training_.gate->propose(order);
}

/// The step counts, its data are used up; parameters and optimizer state are as they were.
Result<void> TrainStep::count_nonfinite() {
  ++outcome_.nonfinite;
  ++nonfinite_in_row_;
  const std::int64_t step = training_.position.step;
  const StepSums& sums = outcome_.sums;
  const bool pause = training_.now.nonfinite == Nonfinite::pause;
  // A loss that isn't finite has such gradients, too: they say nothing more.
  const std::string what = std::isfinite(sums.loss)
                               ? fmt::format("gradients aren't finite (norm {})", outcome_.grad_norm)
                               : fmt::format("the loss isn't finite ({})", sums.loss / sums.tokens);
  if (training_.now.nonfinite == Nonfinite::stop || nonfinite_in_row_ >= kMostNonfinite) {
    failed_together_ = true;
    return fail(
        ErrorKind::failed,
        fmt::format("step {} failed: {}, {} in a row; parameters are as step {} left them; resume from "
                    "the last checkpoint with a lower sched.base_lr or optim.lr_scale",
                    step, what, nonfinite_in_row_, step + 1 - nonfinite_in_row_));
  }
  if (pause || nonfinite_in_row_ == 1)
    reporter_.warn(WarningKind::nonfinite, step,
                   fmt::format("step {}: {}; skipped, {} in a row{}", step, what, nonfinite_in_row_,
                               pause ? "; paused until run.resume()" : ""));
  if (pause) {
    training_.gate->pause();
    reporter_.publish(run_change(RunState::paused, step + 1));
  }
  return {};
}

NonfiniteCounts TrainStep::counts() const {
  return {outcome_.nonfinite, nonfinite_in_row_};
}

void TrainStep::take_counts(const NonfiniteCounts& counts) {
  outcome_.nonfinite = counts.nonfinite;
  nonfinite_in_row_ = counts.nonfinite_in_row;
}

Result<void> TrainStep::catch_up(int source, bool behind) {
  std::array<double, 3> told{};
  if (training_.rank() == source)
    told = {outcome_.learning_rate, divisor_.item<double>(), skip_.item<double>()};
  const Buffer buffer{told.data(), told.size(), DataType::float64};
  if (auto sent = training_.options.communicator.broadcast(buffer, source, "catching up")->wait(); !sent)
    return sent;
  if (!behind) return {};
  const auto on_device = [this](double value) {
    return at::full({}, value, at::TensorOptions(at::kFloat).device(training_.device.where()));
  };
  optimizer_->set_learning_rate(told[0]);
  optimizer_->step(training_.now.optimizer, on_device(told[1]), on_device(told[2]));
  return {};
}

TrainStep::Kept TrainStep::take_kept() {
  optimizer_->forget_gradients();
  for (const Parameter& parameter : training_.task->parameters()) parameter.tensor.mutable_grad().reset();
  return {std::move(optimizer_), counts(), smaller_micro_batch_, since_taken_, pending_};
}

void TrainStep::put_kept(const Kept& kept) {
  take_counts(kept.counts);
  smaller_micro_batch_ = kept.smaller_micro_batch;
  if (kept.since_taken.defined()) since_taken_ = kept.since_taken;
  pending_ = kept.pending;
}

}  // namespace footplate
