#include "runtime/tasks/faulty_task.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>

namespace footplate {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Whether `step` is among the `times` ones that the fault asks for.
bool strikes(const std::optional<Fault>& fault, std::int64_t step) {
  if (!fault) return false;
  const std::int64_t first = fault->get("step").value_or(step);
  return step >= first && step < first + fault->get("times").value_or(1);
}

/// As a batch that is too large: the allocator's own error.
void ask_for_too_much() {
  constexpr std::int64_t kTooMany = std::int64_t{1} << 50;
  at::empty({kTooMany}, at::kFloat);
}

}  // namespace

FaultyTask::FaultyTask(std::unique_ptr<v1::Task> inner, const std::int64_t& step, int rank)
    : inner_(std::move(inner)),
      first_parameter_(inner_->parameters().front().tensor),
      step_(step),
      throws_(fault("step_throw", rank)),
      out_of_memory_(fault("step_oom", rank)),
      device_error_(fault("device_error", rank)),
      nan_gradient_(fault("nan_grad", rank)),
      nan_loss_(fault("nan_loss", rank)),
      flip_bit_(fault("flip_bit", rank)),
      evaluation_throws_(fault("eval_throw", rank)),
      stalls_(fault("eval_stall", rank)),
      evaluation_nan_(fault("eval_nan", rank)) {
  if (nan_gradient_)
    first_parameter_.register_hook([this](at::Tensor gradient) {
      put_nan_among(gradient);
      return gradient;
    });
}

void FaultyTask::put_nan_among(at::Tensor& gradient) const {
  if (!strikes(nan_gradient_, step_)) return;
  gradient = gradient.clone();  // others may hold it
  gradient.view({-1}).narrow(0, 0, 1).fill_(kNan);
}

v1::Batch FaultyTask::load(const v1::Samples& samples) {
  if (samples.held_out) load_held_out(samples);
  v1::Batch batch = inner_->load(samples);
  if (!samples.held_out) {
    const MutexLock lock(mutex_);
    samples_of_[batch.weight] = static_cast<std::int64_t>(samples.indexes.size());
  }
  return batch;
}

at::Tensor FaultyTask::loss(const v1::Batch& batch, v1::Sums& sums) {
  fail_step(batch);
  const at::Tensor loss = inner_->loss(batch, sums);
  return strikes(nan_loss_, step_) ? loss.add(kNan) : loss;
}

at::Tensor FaultyTask::evaluate(const v1::Batch& batch, v1::Sums& sums) {
  const at::Tensor loss = inner_->evaluate(batch, sums);
  return evaluation_nan_ ? loss.add(kNan) : loss;
}

void FaultyTask::fail_step(const v1::Batch& batch) {
  if (throws_ && throws_->matches("step", step_)) throw std::runtime_error("injected by FOOTPLATE_FAULT");
  if (out_of_memory_ && step_ >= out_of_memory_->get("step").value_or(0) &&
      samples_of(batch) > out_of_memory_->get("above").value_or(0))
    ask_for_too_much();
  if (device_error_ && step_ >= device_error_->get("step").value_or(0))
    throw std::runtime_error("CUDA error: an illegal memory access was encountered (FOOTPLATE_FAULT)");
}

std::int64_t FaultyTask::samples_of(const v1::Batch& batch) {
  const MutexLock lock(mutex_);
  return samples_of_[batch.weight];
}

/// flip_bit: a high bit of a float's fraction, since a low one is soon lost in rounding.
void FaultyTask::begin_step() {
  constexpr std::int64_t kBit = 0x400000;
  if (!flip_bit_ || step_ == 0 || flipped_after_ == step_ - 1 || !flip_bit_->matches("step", step_ - 1))
    return;
  flipped_after_ = step_ - 1;
  const at::NoGradGuard no_grad;
  first_parameter_.detach().view({-1}).narrow(0, 0, 1).view(at::kInt).bitwise_xor_(kBit);
}

void FaultyTask::load_held_out(const v1::Samples& samples) {
  const std::int64_t first = samples.indexes.front();
  const bool begins = first <= first_sample_ || first_sample_ < 0;
  first_sample_ = first;
  if (!begins) return;
  // evaluate() halves its batches from try to try.
  const auto size = static_cast<std::int64_t>(samples.indexes.size());
  try_ = threw_ || size < batch_size_ ? try_ + 1 : 0;
  batch_size_ = size;
  threw_ = true;
  fail_evaluation(size);
  threw_ = false;
}

void FaultyTask::fail_evaluation(std::int64_t batch_size) const {
  if (stalls_ && try_ == stalls_->get("try").value_or(0))
    std::this_thread::sleep_for(std::chrono::milliseconds(stalls_->get("ms").value_or(0)));
  if (evaluation_throws_ && batch_size > evaluation_throws_->get("above").value_or(0) &&
      try_ < evaluation_throws_->get("tries").value_or(std::numeric_limits<std::int64_t>::max())) {
    if (evaluation_throws_->get("above")) ask_for_too_much();
    throw std::runtime_error("injected by FOOTPLATE_FAULT");
  }
}

}  // namespace footplate
