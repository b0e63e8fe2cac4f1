#include "runtime/optim/master_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "runtime/optim/state_entry.h"

namespace footplate {
namespace {

bool is_bf16(const at::Tensor& value) {
  return value.scalar_type() == at::kBFloat16;
}

bool is_elsewhere(const ParameterGroup::Elsewhere& one) {
  return one.type == at::kBFloat16;
}

}  // namespace

bool has_bf16(const std::vector<ParameterGroup>& groups) {
  return std::ranges::any_of(groups, [](const ParameterGroup& group) {
    return std::ranges::any_of(group.values, is_bf16) || std::ranges::any_of(group.elsewhere, is_elsewhere);
  });
}

MasterWeights::MasterWeights(std::vector<ParameterGroup> groups, ComputeDevice& device, const Make& make)
    : device_(device) {
  const at::NoGradGuard no_grad;
  for (ParameterGroup& group : groups) {
    ParameterGroup& masters = masters_.emplace_back();
    std::ranges::copy_if(group.elsewhere, std::back_inserter(masters.elsewhere), is_elsewhere);
    for (std::size_t i = 0; i < group.values.size(); ++i) {
      if (!is_bf16(group.values[i])) continue;
      parameters_.push_back(std::exchange(group.values[i], group.values[i].to(at::kFloat)));
      values_.push_back(group.values[i]);
      masters.names.push_back(group.names[i]);
      masters.values.push_back(group.values[i]);
      if (!group.shards.empty()) masters.shards.push_back(group.shards[i]);
    }
  }
  inner_ = make(std::move(groups));
}

/// Also after a step that is skipped: the same once more.
void MasterWeights::step(const OptimizerSettings& settings, const at::Tensor& divisor,
                         const at::Tensor& skip) {
  inner_->step(settings, divisor, skip);
  const at::NoGradGuard no_grad;
  if (!parameters_.empty()) at::_foreach_copy_(parameters_, values_);
}

/// A parameter that nobody has written is its rounded master.
void MasterWeights::take_parameters() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const at::Tensor same = values_[i].to(at::kBFloat16).eq(parameters_[i]);
    values_[i].copy_(at::where(same, values_[i], parameters_[i].to(at::kFloat)));
  }
}

void MasterWeights::list_state(StateTable& table) const {
  inner_->list_state(table);
  for (const ParameterGroup& group : masters_) {
    for (std::size_t i = 0; i < group.values.size(); ++i)
      table.add(state_entry("master", group, i, group.values[i], device_));
    add_elsewhere(table, "master", group);
  }
}

}  // namespace footplate
