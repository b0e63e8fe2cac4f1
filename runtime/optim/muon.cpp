#include "runtime/optim/muon.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace footplate {
namespace {

/// Takes the groups that are muon's own, or the others, out of `groups`.
std::vector<ParameterGroup> taken(std::vector<ParameterGroup>& groups, bool orthogonal) {
  const auto rest = std::ranges::stable_partition(
      groups, [&](const ParameterGroup& group) { return group.orthogonal != orthogonal; });
  std::vector<ParameterGroup> out(std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
  groups.erase(rest.begin(), rest.end());
  return out;
}

/// How large an orthogonal update of that shape is made: what AdamW's usually is.
double size_of_update(const at::Tensor& matrix) {
  constexpr double kUsual = 0.2;
  return kUsual * std::sqrt(static_cast<double>(std::max(matrix.size(0), matrix.size(1))));
}

}  // namespace

Muon::Muon(std::vector<ParameterGroup> groups, ComputeDevice& device)
    : MomentumOptimizer(taken(groups, /*orthogonal=*/true), device), others_(std::move(groups), device) {}

void Muon::set_learning_rate(double rate) {
  MomentumOptimizer::set_learning_rate(rate);
  others_.set_learning_rate(rate);
}

void Muon::step(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip) {
  others_.step(settings, divisor, skip);
  move_all(settings, divisor, skip, [&](const at::Tensor& gradient, const at::Tensor& mean) {
    const at::Tensor next = at::lerp(gradient, mean, settings.momentum);
    const at::Tensor ahead = settings.nesterov ? at::lerp(gradient, next, settings.momentum) : next;
    const at::Tensor update = orthogonalized(ahead.flatten(1));
    return Move{.direction = update.view(gradient.sizes()), .size = size_of_update(update), .mean = next};
  });
}

void Muon::list_state(StateTable& table) const {
  MomentumOptimizer::list_state(table);
  others_.list_state(table);
}

void Muon::forget_gradients() {
  MomentumOptimizer::forget_gradients();
  others_.forget_gradients();
}

void Muon::take_gradients(std::vector<ParameterGroup> groups) {
  MomentumOptimizer::take_gradients(taken(groups, /*orthogonal=*/true));
  others_.take_gradients(std::move(groups));
}

at::Tensor orthogonalized(const at::Tensor& matrix) {
  // The coefficients make the slope at zero as large as it can be, at the cost of singular values that only
  // come near one.
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  constexpr int kIterations = 5;
  constexpr double kSmallest = 1e-7;
  const bool tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = tall ? matrix.t() : matrix;
  x = x.div(x.norm().clamp_min(kSmallest));
  if (!x.is_cpu()) x = x.to(at::kBFloat16);
  for (int i = 0; i < kIterations; ++i) {
    const at::Tensor square = at::mm(x, x.t());
    const at::Tensor polynomial = at::addmm(square, square, square, kB, kC);
    x = at::addmm(x, polynomial, x, kA);
  }
  return (tall ? x.t() : x).to(at::kFloat).contiguous();
}

}  // namespace footplate
