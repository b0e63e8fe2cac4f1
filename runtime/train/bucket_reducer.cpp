#include "runtime/train/bucket_reducer.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace footplate {

BucketReducer::BucketReducer(const std::vector<Parameter>& parameters, const KeptShares& kept,
                             int copies_from, BucketPool& pool, Communicator& communicator, PhaseTimer& timer)
    : parameters_(parameters),
      kept_(kept),
      copies_from_(copies_from),
      pool_(pool),
      communicator_(communicator),
      timer_(timer),
      hooks_(parameters,
             [this](const at::Tensor& parameter, std::size_t number) { arrived(parameter, number); }) {}

void BucketReducer::configure(double bucket_mb, bool overlap) {
  const GradientLayout& layout = *kept_.mine.layout;
  pool_.configure(layout.buckets_of_stripes(elements_of_mb(bucket_mb)), overlap);
  arrivals_ = BucketArrivals(pool_.buckets(), layout.parameters());
}

void BucketReducer::begin_step(int passes) {
  for (const Parameter& parameter : parameters_) parameter.tensor.mutable_grad().reset();
  passes_ = passes;
  pass_ = 0;
  outcome_ = {};
}

void BucketReducer::expect_backward(bool /*last*/) {
  arrivals_.begin();
  in_backward_ = true;
}

void BucketReducer::arrived(const at::Tensor& parameter, std::size_t number) {
  const at::NoGradGuard no_grad;
  const at::Tensor gradient = std::exchange(parameter.mutable_grad(), at::Tensor());
  if (!in_backward_) return;
  if (arrivals_.first_bucket(number) < launched_)
    throw std::runtime_error(fmt::format(
        "the gradient of '{}' came twice in one backward pass, and is on its way to the other ranks already "
        "(a module that is used twice under checkpointing?); set optim.shard = 1 and comm.overlap = \"off\"",
        parameters_[parameters_.size() - 1 - number].name));
  add_to_buckets(gradient, number);
  arrivals_.arrived(number);
  while (launched_ < pool_.buckets().size() && arrivals_.is_complete(launched_)) launch_next();
}

void BucketReducer::add_to_buckets(const at::Tensor& gradient, std::size_t number) {
  const at::Tensor flat = (gradient.is_sparse() ? gradient.to_dense() : gradient).reshape({-1});
  const Stretch place = kept_.mine.layout->of(number);
  for (std::size_t bucket = arrivals_.first_bucket(number); bucket < arrivals_.end_bucket(number); ++bucket) {
    const Stretch& whole = pool_.buckets()[bucket].elements;
    for (const Stretch& part : within(place, {whole}))
      part_of(memory_of(bucket), whole.first, part).add_(part_of(flat, place.first, part));
  }
}

/// Zeros at first.
at::Tensor& BucketReducer::memory_of(std::size_t bucket) {
  if (const auto found = open_.find(bucket); found != open_.end()) return found->second;
  return open_.emplace(bucket, take().zero_()).first->second;
}

/// Where there is no more memory, that of a bucket on its way. Throws where none is.
at::Tensor BucketReducer::take() {
  while (true) {
    try {
      return pool_.take();
    } catch (const std::exception&) {
      if (sent_.empty()) throw;
      receive();
    }
  }
}

void BucketReducer::launch_next() {
  const std::size_t bucket = launched_;
  at::Tensor memory = std::move(memory_of(bucket));
  open_.erase(bucket);
  const Buffer buffer = buffer_of(pool_.buckets()[bucket], memory);
  Sent& sent = sent_.emplace_back();
  sent.bucket = bucket;
  sent.is_first = pass_ == 0;
  sent.memory = std::move(memory);
  sent.reduced = communicator_.reduce_scatter(buffer, ReduceOp::sum, "gradients");
  if (kept_.copied) sent.copied = communicator_.pass_shares(buffer, copies_from_, "copies");
  ++launched_;
  while (sent_.size() > pool_.on_their_way()) receive();
}

void BucketReducer::end_pass() {
  while (launched_ < pool_.buckets().size()) launch_next();
  launched_ = 0;
  ++pass_;
}

void BucketReducer::backward_done() {
  const at::NoGradGuard no_grad;
  end_pass();
  in_backward_ = false;
}

void BucketReducer::receive() {
  const Sent sent = std::move(sent_.front());
  sent_.pop_front();
  timer_.enter(Phase::reduce);
  const auto wait = [this](Work& work) {
    auto done = work.wait();
    if (outcome_ && !done) outcome_ = std::move(done);
  };
  wait(*sent.reduced);
  if (sent.copied) wait(*sent.copied);
  if (in_backward_) timer_.enter(Phase::backward);
  if (outcome_) {
    keep(kept_.mine, sent);
    if (kept_.copied) keep(*kept_.copied, sent);
  }
  pool_.give_back(sent.memory);
}

void BucketReducer::keep(const ShareOfRank& share, const Sent& sent) const {
  const Stretch& whole = pool_.buckets()[sent.bucket].elements;
  for (const Stretch& block : within(whole, share.blocks)) {
    const at::Tensor part = part_of(sent.memory, whole.first, block);
    at::Tensor kept = share.gradient(block);
    if (sent.is_first)
      kept.copy_(part);
    else
      kept.add_(part);
  }
}

/// After a pass that failed, nobody takes what comes of the step: then what is in the buckets doesn't matter,
/// and their memory does for those that follow.
Result<void> BucketReducer::finish() {
  const at::NoGradGuard no_grad;
  in_backward_ = false;
  for (auto& [bucket, memory] : std::exchange(open_, {})) pool_.give_back(std::move(memory));
  while (pass_ < passes_) end_pass();
  while (!sent_.empty()) receive();
  return outcome_;
}

}  // namespace footplate
