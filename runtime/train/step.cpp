// One training step: data, forward, backward, reduce, update.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/train/agree.h"
#include "runtime/train/loop.h"

namespace footplate {
namespace {

/// Keeps the clipping factor finite where all gradients are zero.
constexpr double kClipEpsilon = 1e-6;

bool is_due(std::int64_t every, std::int64_t step) {
  return every > 0 && step % every == 0;
}

}  // namespace

Result<void> Trainer::Loop::train_step() {
  std::string reason;
  try {
    accumulate_gradients();
  } catch (const std::exception& error) {
    // This rank still takes part in the reduction: its status tells the others, none of them hangs.
    reason = error.what();
    if (reason.empty()) reason = "unknown error";
    gradients_.sums().failed_ranks = 1;
  }

  timer_.enter(Phase::reduce);
  if (auto reduced = reducer_.finish(); !reduced) return reduced;
  sums_ = gradients_.sums();
  if (sums_.failed_ranks > 0) {
    const auto reasons = gather_reasons(options_.communicator, reason);
    failed_together_ = reasons.has_value();
    return fail(ErrorKind::failed, fmt::format("step {} failed: {}; parameters are as step {} left them",
                                               step_, reasons ? *reasons : reasons.error().message, step_));
  }

  timer_.enter(Phase::optimizer);
  update_parameters(sums_);
  inject_bit_flip();
  samples_drawn_ += now_.batch_size;
  tokens_since_line_ += static_cast<std::int64_t>(sums_.tokens);
  ++steps_since_line_;
  ++step_;
  return {};
}

void Trainer::Loop::accumulate_gradients() {
  timer_.enter(Phase::data);
  gradients_.zero();
  if (step_throw_ && step_throw_->matches("step", step_))
    throw std::runtime_error("injected by FOOTPLATE_FAULT");
  Slice slice = slice_of(now_.batch_size, rank(), options_.communicator.world_size());
  slice.first += samples_drawn_;
  slice.last += samples_drawn_;
  const std::int64_t most = now_.micro_batch > 0 ? now_.micro_batch : slice.size();
  for (std::int64_t first = slice.first; first < slice.last; first += most) {
    const std::int64_t last = std::min(first + most, slice.last);
    forward_backward({first, last}, last == slice.last);
  }
}

void Trainer::Loop::forward_backward(Slice samples, bool last) {
  timer_.enter(Phase::data);
  const at::Tensor batch = task_->load(samples);
  timer_.enter(Phase::forward);
  const Loss loss = task_->loss(batch);
  gradients_.loss().add_(loss.sum.detach());
  gradients_.sums().tokens += static_cast<float>(loss.tokens);
  timer_.enter(Phase::backward);
  if (last) reducer_.expect_last_backward();
  loss.sum.backward();
}

/// The mean over all tokens and the clipping are one divisor, applied by the optimizer's own pass.
void Trainer::Loop::update_parameters(const StepSums& sums) {
  learning_rate_ = current_learning_rate();
  double divisor = sums.tokens;
  if (now_.clip_norm > 0 || is_due(now_.log_every, step_ + 1)) {
    grad_norm_ = at::linalg_vector_norm(gradients_.gradients()).item<double>() / sums.tokens;
    if (now_.clip_norm > 0) divisor *= std::max(1.0, (grad_norm_ + kClipEpsilon) / now_.clip_norm);
  }
  optimizer_.step(now_, learning_rate_, static_cast<float>(divisor));
}

/// A high bit of a float's fraction: a low one is soon lost in rounding.
void Trainer::Loop::inject_bit_flip() {
  if (flip_bit_ && flip_bit_->matches("step", step_))
    static_cast<unsigned char*>(state_.entries().front().data)[2] ^= 0x40;
}

}  // namespace footplate
