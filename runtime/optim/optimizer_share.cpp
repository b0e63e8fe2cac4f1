#include "runtime/optim/optimizer_share.h"

#include "runtime/optim/state_entry.h"

namespace footplate {
namespace {

std::vector<StateEntry> values_of(const std::vector<v1::Parameter>& parameters, ComputeDevice& device,
                                  const std::optional<ShareOfRank>& share) {
  ParameterGroup part = all_of(parameters);
  if (share) part = cut({part}, *share).front();
  std::vector<StateEntry> entries;
  for (std::size_t i = 0; i < part.values.size(); ++i) entries.push_back(value_entry(part, i, device));
  return entries;
}

}  // namespace

OptimizerShare::OptimizerShare(OptimizerKind kind, const std::vector<v1::Parameter>& parameters,
                               const std::vector<v1::Group>& groups, ComputeDevice& device,
                               const std::optional<KeptShares>& kept)
    : kind_(kind) {
  const std::optional<ShareOfRank> mine = kept ? std::optional(kept->mine) : std::nullopt;
  mine_ = make_optimizer(kind, parameters, groups, device, mine);
  mine_values_ = values_of(parameters, device, mine);
  if (!kept) return;
  share_ = copied_share_ = kept->share;
  shares_ = kept->shares;
  if (!kept->copied) return;
  copied_share_ = kept->copied_share;
  copy_ = make_optimizer(kind, parameters, groups, device, kept->copied);
  copied_values_ = values_of(parameters, device, kept->copied);
}

void OptimizerShare::set_learning_rate(double rate) {
  mine_->set_learning_rate(rate);
  if (copy_) copy_->set_learning_rate(rate);
}

void OptimizerShare::step(const OptimizerSettings& settings, const at::Tensor& divisor,
                          const at::Tensor& skip) {
  mine_->step(settings, divisor, skip);
  if (copy_) copy_->step(settings, divisor, skip);
}

void OptimizerShare::take_parameters() {
  mine_->take_parameters();
  if (copy_) copy_->take_parameters();
}

void OptimizerShare::forget_gradients() {
  mine_->forget_gradients();
  if (copy_) copy_->forget_gradients();
}

void OptimizerShare::take_gradients(const std::vector<v1::Parameter>& parameters,
                                    const std::vector<v1::Group>& groups,
                                    const std::optional<KeptShares>& kept) {
  const std::optional<ShareOfRank> mine = kept ? std::optional(kept->mine) : std::nullopt;
  mine_->take_gradients(groups_for(kind_, parameters, groups, mine));
  if (copy_) copy_->take_gradients(groups_for(kind_, parameters, groups, kept->copied));
}

std::vector<StateEntry> OptimizerShare::copied() const {
  return copy_ ? entries_of(*copy_, copied_values_) : std::vector<StateEntry>();
}

std::vector<StateEntry> OptimizerShare::entries_of(const Optimizer& optimizer,
                                                   const std::vector<StateEntry>& values) {
  StateTable table;
  optimizer.list_state(table);
  std::vector<StateEntry> entries = table.entries();
  entries.insert(entries.end(), values.begin(), values.end());
  return entries;
}

}  // namespace footplate
