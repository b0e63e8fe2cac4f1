#include "runtime/train/bucket_reducer.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "runtime/device/compute_device.h"

namespace footplate {
namespace {

/// Larger buckets would take the memory that is saved; a stripe may be as large.
constexpr double kLargestBucketMb = 64;

}  // namespace

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

/// What is on its way has its memory until it is there.
BucketReducer::~BucketReducer() {
  const MutexLock lock(mutex_);
  for (Sent& sent : sent_) {
    static_cast<void>(sent.reduced->wait());
    if (sent.copied) static_cast<void>(sent.copied->wait());
  }
}

void BucketReducer::configure(double bucket_mb, bool overlap) {
  const MutexLock lock(mutex_);
  const GradientLayout& layout = *kept_.mine.layout;
  const std::int64_t at_least = elements_of_mb(std::min(bucket_mb, kLargestBucketMb));
  pool_.configure(layout.buckets_of_stripes(at_least), overlap);
  arrivals_ = BucketArrivals(pool_.buckets(), layout.parameters());
}

void BucketReducer::begin_step(int passes) {
  const MutexLock lock(mutex_);
  for (const Parameter& parameter : parameters_) parameter.tensor.mutable_grad().reset();
  passes_ = passes;
  pass_ = 0;
  outcome_ = {};
}

void BucketReducer::expect_backward(bool /*last*/) {
  const MutexLock lock(mutex_);
  arrivals_.begin();
  in_backward_ = true;
}

void BucketReducer::arrived(const at::Tensor& parameter, std::size_t number) {
  const at::NoGradGuard no_grad;
  const MutexLock lock(mutex_);
  const at::Tensor gradient = std::exchange(parameter.mutable_grad(), at::Tensor());
  if (!in_backward_) return;  // of a pass that has failed elsewhere
  const GradientLayout& layout = *kept_.mine.layout;
  if (arrivals_.first_bucket(number) < launched_)
    gradient_is_late(parameters_[layout.declared(number)].name, "optim.shard = 1 and comm.overlap = \"off\"");
  const bool is_first = arrivals_.is_first(number);
  const at::Tensor flat = (gradient.is_sparse() ? gradient.to_dense() : gradient).reshape({-1});
  const Stretch place = layout.of(number);
  // One bucket after the other: of a gradient that is larger than a bucket they don't have to be there at
  // once.
  for (std::size_t bucket = arrivals_.first_bucket(number); bucket < arrivals_.end_bucket(number); ++bucket) {
    const Stretch& whole = pool_.buckets()[bucket].elements;
    for (const Stretch& part : within(place, {whole}))
      part_of(memory_of(bucket), whole.first, part).add_(part_of(flat, place.first, part));
    if (is_first) arrivals_.arrived_in(bucket);
    while (launched_ < pool_.buckets().size() && arrivals_.is_complete(launched_)) launch_next();
  }
}

/// Zeros at first.
at::Tensor& BucketReducer::memory_of(std::size_t bucket) {
  if (const auto found = open_.find(bucket); found != open_.end()) return found->second;
  return open_.emplace(bucket, take().zero_()).first->second;
}

/// Where there is no more memory, that of a bucket on its way. Throws where none is.
at::Tensor BucketReducer::take() {
  while (!pool_.has_free() && !pool_.may_grow() && !sent_.empty()) receive();
  try {
    return pool_.take();
  } catch (const std::exception& error) {
    if (sent_.empty() || !is_out_of_memory(error)) throw;
  }
  return take();
}

void BucketReducer::launch_next() {
  const std::size_t bucket = launched_;
  const at::Tensor& memory = memory_of(bucket);
  const Buffer buffer = buffer_of(pool_.buckets()[bucket], memory);
  auto reduced = communicator_.reduce_scatter(buffer, ReduceOp::sum, "gradients");
  auto copied = kept_.copied ? communicator_.pass_shares(buffer, copies_from_, "copies") : nullptr;
  sent_.push_back({bucket, pass_ == 0, memory, std::move(reduced), std::move(copied)});
  open_.erase(bucket);
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
  const MutexLock lock(mutex_);
  end_pass();
  in_backward_ = false;
}

void BucketReducer::receive() {
  const Sent sent = std::move(sent_.front());
  sent_.pop_front();
  timer_.enter(Phase::reduce);
  auto reduced = sent.reduced->wait();
  if (outcome_ && !reduced) outcome_ = std::move(reduced);
  auto copied = sent.copied ? sent.copied->wait() : Result<void>();
  if (outcome_ && !copied) outcome_ = std::move(copied);
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
  const MutexLock lock(mutex_);
  in_backward_ = false;
  for (auto& [bucket, memory] : std::exchange(open_, {})) pool_.give_back(std::move(memory));
  while (pass_ < passes_) end_pass();
  while (!sent_.empty()) receive();
  pool_.trim();
  return outcome_;
}

}  // namespace footplate
