#include "runtime/train/parameter_gather.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>

#include <algorithm>
#include <utility>

namespace footplate {
namespace {

/// Parameters' elements beside each other, and where they are in a bucket's memory.
struct Pieces {
  std::vector<at::Tensor> values, places;
};

Pieces pieces_of(const std::vector<Parameter>& parameters, const GradientLayout& layout,
                 const GradientLayout::Bucket& bucket, const std::vector<Stretch>& blocks,
                 const at::Tensor& memory) {
  Pieces pieces;
  const std::vector<Stretch> inside = within(bucket.elements, blocks);
  for (std::size_t number = bucket.first; number < bucket.last; ++number) {
    const at::Tensor value = parameters[layout.declared(number)].tensor.detach().view({-1});
    const Stretch whole = layout.of(number);
    for (const Stretch& part : within(whole, inside)) {
      pieces.values.push_back(part_of(value, whole.first, part));
      pieces.places.push_back(part_of(memory, bucket.elements.first, part));
    }
  }
  return pieces;
}

void copy_all(std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  if (!to.empty()) at::_foreach_copy_(to, from);
}

}  // namespace

BufferGather::BufferGather(const std::vector<Parameter>& parameters, const GradientBuffer& buffer,
                           const ShareOfRank& mine, Communicator& communicator)
    : buffer_(buffer), communicator_(communicator) {
  const ParameterGroup whole = all_of(parameters);
  values_ = whole.values;
  places_ = whole.gradients;
  for (const ParameterGroup& part : cut({whole}, mine)) {
    own_values_ = part.values;
    own_places_ = part.gradients;
  }
}

Result<void> BufferGather::run() {
  const at::NoGradGuard no_grad;
  copy_all(own_places_, own_values_);
  const Buffer buffer = buffer_.stretch({0, buffer_.gradients().numel()});
  if (auto gathered = communicator_.all_gather_shares(buffer, "parameters")->wait(); !gathered)
    return gathered;
  copy_all(values_, places_);
  return {};
}

BucketGather::BucketGather(const std::vector<Parameter>& parameters, const ShareOfRank& mine,
                           BucketPool& pool, Communicator& communicator)
    : parameters_(parameters), mine_(mine), pool_(pool), communicator_(communicator) {}

/// No memory is made for it: backward has had as much, and one bucket is enough.
Result<void> BucketGather::run() {
  const at::NoGradGuard no_grad;
  const std::size_t at_once = std::max<std::size_t>(1, pool_.on_their_way());
  Result<void> outcome;
  for (std::size_t bucket = 0; outcome && bucket < pool_.buckets().size(); ++bucket) {
    while (!sent_.empty() && (sent_.size() == at_once || !pool_.has_free())) receive(outcome);
    if (outcome) launch(bucket);
  }
  while (!sent_.empty()) receive(outcome);
  return outcome;
}

void BucketGather::launch(std::size_t number) {
  const GradientLayout::Bucket& bucket = pool_.buckets()[number];
  const at::Tensor memory = pool_.take();
  Pieces own = pieces_of(parameters_, *mine_.layout, bucket, mine_.blocks, memory);
  copy_all(own.places, own.values);
  sent_.push_back({number, memory, communicator_.all_gather_shares(buffer_of(bucket, memory), "parameters")});
}

void BucketGather::receive(Result<void>& outcome) {
  const Sent sent = std::move(sent_.front());
  sent_.pop_front();
  auto gathered = sent.gathered->wait();
  if (gathered) {
    const GradientLayout::Bucket& bucket = pool_.buckets()[sent.bucket];
    Pieces all = pieces_of(parameters_, *mine_.layout, bucket, {bucket.elements}, sent.memory);
    copy_all(all.values, all.places);
  } else if (outcome) {
    outcome = std::move(gathered);
  }
  pool_.give_back(sent.memory);
}

}  // namespace footplate
