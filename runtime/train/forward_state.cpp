#include "runtime/train/forward_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/where.h>

namespace footplate {

std::int64_t ForwardState::elements_of(const std::vector<v1::State>& states) {
  std::int64_t elements = 0;
  for (const v1::State& state : states)
    if (state.by == v1::State::WrittenBy::forward) elements += state.tensor.numel();
  return elements == 0 ? 0 : elements + 1;
}

ForwardState::ForwardState(const std::vector<v1::State>& states, const at::Tensor& row) {
  if (row.numel() == 0) return;
  const std::int64_t elements = row.numel() - 1;
  all_sums_ = row.narrow(0, 0, elements);
  all_kept_ = at::empty_like(all_sums_);
  count_ = row.select(0, elements);
  std::int64_t at = 0;
  for (const v1::State& state : states) {
    if (state.by != v1::State::WrittenBy::forward) continue;
    const auto part_of = [&](const at::Tensor& all) {
      return all.narrow(0, at, state.tensor.numel()).view(state.tensor.sizes());
    };
    values_.push_back(state.tensor.detach());
    kept_.push_back(part_of(all_kept_));
    sums_.push_back(part_of(all_sums_));
    at += state.tensor.numel();
  }
}

void ForwardState::keep() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values_.size(); ++i) kept_[i].copy_(values_[i]);
}

void ForwardState::publish(bool counts) {
  if (values_.empty() || !counts) return;  // the row was zeroed with the gradients
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values_.size(); ++i) sums_[i].copy_(values_[i]);
  count_.fill_(1);
}

void ForwardState::put_back() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i].copy_(kept_[i]);
}

void ForwardState::conclude(const at::Tensor& skip) {
  if (values_.empty()) return;
  const at::NoGradGuard no_grad;
  const at::Tensor means = all_sums_.div(count_);
  const at::Tensor overflows = means.isinf().logical_and(all_kept_.isfinite());
  const at::Tensor stays = overflows.logical_or(skip.gt(0.5)).logical_or(count_.lt(0.5));
  all_sums_.copy_(at::where(stays, all_kept_, means));
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i].copy_(sums_[i]);
}

}  // namespace footplate
