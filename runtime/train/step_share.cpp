#include "runtime/train/step_share.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/zeros.h>

#include "runtime/train/sum_of_squares.h"

namespace footplate {
namespace {

ShareOfRank share_of(const GradientBuffer& buffer, int ranks, int rank) {
  return {buffer.gradients().const_data_ptr<float>(), blocks_of(buffer.gradients().numel(), ranks, rank)};
}

KeptShares shares_of(const GradientBuffer& buffer, const Communicator& communicator, int copies_from) {
  const int ranks = communicator.world_size(), rank = communicator.rank();
  KeptShares kept{rank, rank_before(rank, ranks, copies_from), ranks, share_of(buffer, ranks, rank), {}};
  if (copies_from > 0) kept.copied = share_of(buffer, ranks, kept.copied_share);
  return kept;
}

}  // namespace

StepShare::StepShare(const std::vector<Parameter>& parameters, GradientBuffer& buffer,
                     Communicator& communicator, int copies_from)
    : buffer_(buffer),
      communicator_(communicator),
      copies_from_(copies_from),
      kept_(shares_of(buffer, communicator, copies_from)),
      sums_(at::zeros({buffer.all_sums().numel() + 1},
                      at::TensorOptions(at::kDouble).device(buffer.gradients().device()))) {
  for (const Stretch& block : kept_.mine.blocks)
    own_gradients_.push_back(buffer.gradients().slice(0, block.first, block.end));
  const ParameterGroup whole = all_of(parameters);
  values_ = whole.values;
  places_ = whole.gradients;
  for (const ParameterGroup& mine : cut({whole}, kept_.mine)) {
    own_values_ = mine.values;
    own_places_ = mine.gradients;
  }
}

/// The sums come behind the gradients of the copy in the communicator's order: where those fail, they do.
Result<void> StepShare::reduce_sums() {
  const at::NoGradGuard no_grad;
  const auto gradients = pass_gradients();
  const std::int64_t sums = buffer_.all_sums().numel();
  at::Tensor squares = sums_.select(0, sums).zero_();
  for (const at::Tensor& block : own_gradients_) squares.add_(sum_of_squares(block));
  sums_.narrow(0, 0, sums).copy_(buffer_.all_sums());
  const Buffer all{sums_.mutable_data_ptr(), sums_.numel(), DataType::float64};
  const auto summed = communicator_.all_reduce(all, ReduceOp::sum, "step sums");
  const Result<void> passed = gradients ? gradients->wait() : Result<void>();
  if (auto done = summed->wait(); !passed || !done) return passed ? done : passed;
  buffer_.all_sums().copy_(sums_.narrow(0, 0, sums));
  return {};
}

/// Nothing: there are no copies.
std::unique_ptr<Work> StepShare::pass_gradients() {
  if (!kept_.copied) return nullptr;
  const at::Tensor& gradients = buffer_.gradients();
  const Buffer buffer{gradients.mutable_data_ptr(), gradients.numel(), DataType::float32};
  return communicator_.pass_shares(buffer, copies_from_, "copies");
}

at::Tensor StepShare::norm() const {
  return sums_.select(0, buffer_.all_sums().numel()).sqrt();
}

Result<void> StepShare::gather() {
  const at::NoGradGuard no_grad;
  parameters_are_whole_ = false;
  if (!own_values_.empty()) at::_foreach_copy_(own_places_, own_values_);
  const at::Tensor& all = buffer_.gradients();
  const Buffer buffer{all.mutable_data_ptr(), all.numel(), DataType::float32};
  if (auto gathered = communicator_.all_gather_shares(buffer, "parameters")->wait(); !gathered)
    return gathered;
  at::_foreach_copy_(values_, places_);
  parameters_are_whole_ = true;
  return {};
}

}  // namespace footplate
