#include "runtime/train/step_share.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstddef>

#include "runtime/base/huge_pages.h"
#include "runtime/train/bucket_reducer.h"
#include "runtime/train/buffer_reducer.h"
#include "runtime/train/sum_of_squares.h"

namespace footplate {
namespace {

bool keeps_all(const GradientBuffer& buffer) {
  return buffer.kept() == KeptGradients::all;
}

/// Memory for the blocks' gradients.
at::Tensor gradients_of(const std::vector<Stretch>& blocks, at::Device where) {
  std::int64_t elements = 0;
  for (const Stretch& block : blocks) elements += block.size();
  at::Tensor memory = at::empty({elements}, at::TensorOptions(at::kFloat).device(where));
  if (where.is_cpu())
    ask_for_huge_pages({static_cast<std::byte*>(memory.mutable_data_ptr()), memory.nbytes()});
  return memory.zero_();
}

ShareOfRank share_of(const GradientBuffer& buffer, int rank) {
  ShareOfRank share{&buffer.layout(), buffer.layout().blocks(rank), buffer.gradients()};
  if (!keeps_all(buffer)) share.gradients = gradients_of(share.blocks, buffer.all_sums().device());
  return share;
}

KeptShares shares_of(const GradientBuffer& buffer, const Communicator& communicator, int copies_from) {
  const int ranks = communicator.world_size(), rank = communicator.rank();
  KeptShares kept{rank, rank_before(rank, ranks, copies_from), ranks, share_of(buffer, rank), {}};
  if (copies_from > 0) kept.copied = share_of(buffer, kept.copied_share);
  return kept;
}

std::unique_ptr<ParameterGather> gather_of(const std::vector<Parameter>& parameters,
                                           const GradientBuffer& buffer, const ShareOfRank& mine,
                                           BucketPool& pool, Communicator& communicator) {
  if (keeps_all(buffer)) return std::make_unique<BufferGather>(parameters, buffer, mine, communicator);
  return std::make_unique<BucketGather>(parameters, mine, pool, communicator);
}

}  // namespace

StepShare::StepShare(const std::vector<Parameter>& parameters, GradientBuffer& buffer,
                     Communicator& communicator, int copies_from)
    : parameters_(parameters),
      buffer_(buffer),
      communicator_(communicator),
      copies_from_(copies_from),
      kept_(shares_of(buffer, communicator, copies_from)),
      pool_(buffer.all_sums().device()),
      gather_(gather_of(parameters, buffer, kept_.mine, pool_, communicator)),
      sums_(at::zeros({buffer.all_sums().numel() + 1},
                      at::TensorOptions(at::kDouble).device(buffer.all_sums().device()))) {
  for (const Stretch& block : kept_.mine.blocks) own_gradients_.push_back(kept_.mine.gradient(block));
}

std::unique_ptr<GradientReducer> StepShare::make_reducer(PhaseTimer& timer) {
  if (keeps_all(buffer_))
    return std::make_unique<BufferReducer>(parameters_, buffer_, communicator_, Reduction::shares);
  return std::make_unique<BucketReducer>(parameters_, kept_, copies_from_, pool_, communicator_, timer);
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

/// Nothing: there are no copies, or they came with the buckets.
std::unique_ptr<Work> StepShare::pass_gradients() {
  if (!kept_.copied || !keeps_all(buffer_)) return nullptr;
  return communicator_.pass_shares(buffer_.stretch({0, buffer_.gradients().numel()}), copies_from_, "copies");
}

at::Tensor StepShare::norm() const {
  return sums_.select(0, buffer_.all_sums().numel()).sqrt();
}

Result<void> StepShare::gather() {
  parameters_are_whole_ = false;
  auto gathered = gather_->run();
  parameters_are_whole_ = gathered.has_value();
  return gathered;
}

}  // namespace footplate
