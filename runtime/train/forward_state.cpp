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
  std::int64_t at = 0;
  for (const v1::State& state : states) {
    if (state.by != v1::State::WrittenBy::forward) continue;
    values_.push_back(state.tensor.detach());
    kept_.push_back(at::empty_like(values_.back()));
    sums_.push_back(row.narrow(0, at, state.tensor.numel()).view(state.tensor.sizes()));
    at += state.tensor.numel();
  }
  if (!values_.empty()) count_ = row.narrow(0, at, 1);
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
  const at::Tensor skips = skip.gt(0.5).logical_or(count_.reshape({}).lt(0.5));
  for (std::size_t i = 0; i < values_.size(); ++i)
    values_[i].copy_(at::where(skips, kept_[i], sums_[i].div(count_.reshape({}))));
}

}  // namespace footplate
