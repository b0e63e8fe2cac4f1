// One training step: data, forward, backward, reduce, update.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "runtime/comm/agree.h"
#include "runtime/train/loop.h"

namespace footplate {
namespace {

/// Keeps the clipping factor finite where all gradients are zero.
constexpr double kClipEpsilon = 1e-6;

/// So many steps in a row that aren't finite end the run: what is wrong won't go away by itself.
constexpr std::int64_t kMostNonfinite = 3;

}  // namespace

Result<bool> Trainer::Loop::train_step() {
  std::string reason;
  smaller_micro_batch_ = 0;
  try {
    accumulate_gradients();
  } catch (const std::exception& error) {
    // This rank still takes part in the reduction: its status tells the others, none of them hangs.
    reason = device_.explain(error);
    if (reason.empty()) reason = "unknown error";
    gradients_.mine().failed_ranks = 1;
    gradients_.mine().out_of_memory_ranks = is_out_of_memory(error) ? 1 : 0;
  }

  if (!device_.is_host()) load_ahead();
  timer_.enter(Phase::reduce);
  if (async_evaluation_.ready()) gradients_.mine().evaluations_ready = 1;
  gradients_.publish();
  if (auto reduced = reducer_.finish(); !reduced) return tl::unexpected(reduced.error());

  timer_.enter(Phase::optimizer);
  learning_rate_ = current_learning_rate();
  optimizer_.set_learning_rate(learning_rate_);
  recorder_.run("update", {}, [this](const at::Tensor& /*input*/) { update_parameters(); });
  sums_ = gradients_.fetch();
  grad_norm_ = norm_.item<double>();
  if (sums_.failed_ranks > 0) return after_failure(reason);

  if (std::isfinite(grad_norm_) && std::isfinite(sums_.loss))
    nonfinite_in_row_ = 0;
  else if (auto counted = count_nonfinite(); !counted)
    return tl::unexpected(counted.error());
  samples_drawn_ += now_.batch_size;
  tokens_since_line_ += static_cast<std::int64_t>(sums_.tokens);
  ++steps_since_line_;
  ++step_;
  return true;
}

/// All ranks know of it by the sums, and nobody has written anything. `reason`: this rank's, or empty.
Result<bool> Trainer::Loop::after_failure(const std::string& reason) {
  const auto reasons = gather_reasons(options_.communicator, reason);
  if (!reasons && reasons.error().kind == ErrorKind::lost) return tl::unexpected(reasons.error());
  const std::string why = reasons ? *reasons : reasons.error().message;
  if (reasons && sums_.out_of_memory_ranks == sums_.failed_ranks && try_with_less_memory(why)) return false;
  failed_together_ = reasons.has_value();
  return fail(ErrorKind::failed,
              fmt::format("step {} failed: {}; parameters are as step {} left them", step_, why, step_));
}

/// Half as many samples at once, accumulated to the same batch: all ranks stand until that order applies,
/// which lets them go on. False: there is nothing left to halve.
bool Trainer::Loop::try_with_less_memory(const std::string& reasons) {
  const std::int64_t world = options_.communicator.world_size();
  const std::int64_t slice = (now_.batch_size + world - 1) / world;  // the largest of all ranks
  const std::int64_t most = now_.micro_batch > 0 ? std::min(now_.micro_batch, slice) : slice;
  if (most < 2) return false;
  smaller_micro_batch_ = (most + 1) / 2;
  loaded_ahead_.reset();
  recorder_.configure(records());  // what was recorded holds memory
  device_.empty_cache();
  const std::string text = fmt::format(
      "step {}: {}; nothing has changed. It is tried again with {} sequences of a rank at once, {} before "
      "(train.micro_batch); the batch stays {}",
      step_, reasons, smaller_micro_batch_, most, now_.batch_size);
  if (rank() == 0) log(text);
  publish("warn", {{"kind", "memory"},
                   {"step", step_},
                   {"setting", "train.micro_batch"},
                   {"value", smaller_micro_batch_},
                   {"text", text}});
  gate_->pause();
  propose_smaller_micro_batch();
  return true;
}

void Trainer::Loop::propose_smaller_micro_batch() {
  if (rank() != 0) return;
  Order order;
  order.source = "-- out of memory";
  order.changes = {{"train.micro_batch", smaller_micro_batch_, std::nullopt}};
  order.calls = {{"run.resume", Json::object()}};
  gate_->propose(order);
}

void Trainer::Loop::accumulate_gradients() {
  timer_.enter(Phase::data);
  gradients_.zero();
  const Slice mine = samples_from(samples_drawn_);
  for (Slice part = micro_batch_at(mine.first, mine); part.size() > 0; part = micro_batch_at(part.last, mine))
    forward_backward(part, part.last == mine.last);
}

/// This rank's part of the batch that begins with that sample, of those that aren't passed over.
Slice Trainer::Loop::samples_from(std::int64_t first) const {
  const Slice slice = slice_of(now_.batch_size, rank(), options_.communicator.world_size());
  const std::int64_t begin = first + now_.data_offset;
  return {begin + slice.first, begin + slice.last};
}

/// What goes through the model at once, from a sample of the slice on.
Slice Trainer::Loop::micro_batch_at(std::int64_t first, const Slice& slice) const {
  const std::int64_t most = now_.micro_batch > 0 ? now_.micro_batch : slice.size();
  return {first, std::min(first + most, slice.last)};
}

/// What the next step begins with, while the device is still at this one's gradients. Where that step turns
/// out to begin with something else, it loads that.
void Trainer::Loop::load_ahead() {
  const Slice next = samples_from(samples_drawn_ + now_.batch_size);
  const Slice part = micro_batch_at(next.first, next);
  timer_.enter(Phase::data);
  loaded_ahead_.reset();
  if (part.size() == 0) return;
  try {
    loaded_ahead_ = {part, task_->load(part)};
  } catch (const std::exception&) {
    // The step that needs it tries again, and says why it fails.
  }
}

at::Tensor Trainer::Loop::load(const Slice& samples) {
  const auto ahead = std::exchange(loaded_ahead_, std::nullopt);
  if (ahead && ahead->first.first == samples.first && ahead->first.last == samples.last) return ahead->second;
  return task_->load(samples);
}

void Trainer::Loop::forward_backward(Slice samples, bool last) {
  timer_.enter(Phase::data);
  const at::Tensor batch = load(samples);
  gradients_.mine().tokens += static_cast<float>(task_->tokens(batch));
  timer_.enter(Phase::forward);
  if (last) reducer_.expect_last_backward();
  recorder_.run("forward and backward", batch, [this](const at::Tensor& input) {
    const at::Tensor loss = loss_of(input);
    gradients_.loss().add_(loss.detach());
    timer_.enter(Phase::backward);
    loss.backward();
  });
}

at::Tensor Trainer::Loop::loss_of(const at::Tensor& batch) {
  const MixedPrecision precision(now_.precision, device_.where());
  return task_->loss(batch);
}

/// Enqueued before the host knows what the step has come to: where a rank failed, or anything isn't finite,
/// nothing is written. The sums are the same on all ranks, so what comes of it is. The mean over all tokens
/// and the clipping are one divisor, applied by the optimizer's own pass. The norm is one pass over the
/// gradients: 4 bytes read for each parameter, where the optimizer's pass moves about 30. Also without
/// clipping: anything that isn't finite shows in it.
void Trainer::Loop::update_parameters() {
  const at::NoGradGuard no_grad;
  const at::Tensor sums = gradients_.sums().to(at::kDouble);
  const auto sum = [&](std::size_t offset) {
    return sums.select(0, static_cast<std::int64_t>(offset / sizeof(float)));
  };
  at::Tensor divisor = sum(offsetof(StepSums, tokens));
  norm_ = at::linalg_vector_norm(gradients_.gradients()).to(at::kDouble).div(divisor);
  const at::Tensor is_sound = norm_.isfinite()
                                  .logical_and(sum(offsetof(StepSums, loss)).isfinite())
                                  .logical_and(sum(offsetof(StepSums, failed_ranks)).eq(0));
  if (now_.clip_norm > 0) divisor = divisor.mul(norm_.add(kClipEpsilon).div(now_.clip_norm).clamp_min(1));
  optimizer_.step(now_, divisor.to(at::kFloat), is_sound.logical_not().to(at::kFloat));
}

/// The step counts, its data are used up; parameters and optimizer state are as they were.
Result<void> Trainer::Loop::count_nonfinite() {
  ++nonfinite_;
  ++nonfinite_in_row_;
  const bool pause = now_.nonfinite == Nonfinite::pause;
  const std::string what = std::isfinite(grad_norm_)
                               ? fmt::format("the loss isn't finite ({})", sums_.loss / sums_.tokens)
                               : fmt::format("gradients aren't finite (norm {})", grad_norm_);
  if (now_.nonfinite == Nonfinite::stop || nonfinite_in_row_ >= kMostNonfinite) {
    failed_together_ = true;
    return fail(
        ErrorKind::failed,
        fmt::format("step {} failed: {}, {} in a row; parameters are as step {} left them; resume from "
                    "the last checkpoint with a lower sched.base_lr or optim.lr_scale",
                    step_, what, nonfinite_in_row_, step_ + 1 - nonfinite_in_row_));
  }
  if (pause || nonfinite_in_row_ == 1) {
    const std::string text = fmt::format("step {}: {}; skipped, {} in a row{}", step_, what,
                                         nonfinite_in_row_, pause ? "; paused until run.resume()" : "");
    if (rank() == 0) log(text);
    publish("warn", {{"kind", "nonfinite"}, {"step", step_}, {"text", text}});
  }
  if (pause) {
    gate_->pause();
    publish("run", {{"state", "paused"}, {"step", step_ + 1}});
  }
  return {};
}

}  // namespace footplate
