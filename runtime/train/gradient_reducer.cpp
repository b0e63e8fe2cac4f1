#include "runtime/train/gradient_reducer.h"

#include <torch/csrc/autograd/variable.h>

namespace footplate {

/// Fires on the training thread, inside backward, once a parameter's gradient is accumulated.
class GradientReducer::ArrivalHook : public torch::autograd::PostAccumulateGradHook {
 public:
  ArrivalHook(GradientReducer& reducer, std::size_t parameter) : reducer_(reducer), parameter_(parameter) {}
  void operator()(const at::Tensor& /*tensor*/) override { reducer_.arrived(parameter_); }

 private:
  GradientReducer& reducer_;
  std::size_t parameter_;  // by reversed order
};

GradientReducer::GradientReducer(const std::vector<Parameter>& parameters, GradientBuffer& buffer,
                                 Communicator& communicator, Reduction reduction)
    : parameters_(parameters), buffer_(buffer), communicator_(communicator), reduction_(reduction) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    torch::autograd::impl::set_post_acc_grad_hooks(
        parameters[i].tensor, std::make_unique<ArrivalHook>(*this, parameters.size() - 1 - i));
}

GradientReducer::~GradientReducer() {
  for (const Parameter& parameter : parameters_)
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
}

void GradientReducer::configure(double bucket_mb, bool overlap) {
  constexpr double kMiB = 1024.0 * 1024.0;
  overlap_ = overlap;
  const auto bytes = static_cast<std::int64_t>(bucket_mb * kMiB);
  buckets_ = reduction_ == Reduction::all ? buffer_.buckets(bytes) : buffer_.buckets_of_stripes(bytes);
  first_bucket_.assign(parameters_.size(), buckets_.size());  // without elements it is in none
  missing_.assign(buckets_.size(), 0);
  for (std::size_t bucket = buckets_.size(); bucket-- > 0;)
    for (std::size_t i = buckets_[bucket].first; i < buckets_[bucket].last; ++i) first_bucket_[i] = bucket;
}

void GradientReducer::expect_last_backward() {
  last_backward_ = overlap_;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
    missing_[bucket] = buckets_[bucket].last - buckets_[bucket].first;
}

void GradientReducer::arrived(std::size_t parameter) {
  if (!last_backward_) return;
  for (std::size_t bucket = first_bucket_[parameter];
       bucket < buckets_.size() && buckets_[bucket].first <= parameter; ++bucket)
    --missing_[bucket];
  // In order: a later bucket that is complete waits for the earlier ones.
  const std::size_t at_once = buckets_.size() - (reduction_ == Reduction::all ? 1 : 0);
  while (works_.size() < at_once && missing_[works_.size()] == 0) launch_next();
}

void GradientReducer::launch_next() {
  const Buffer& buffer = buckets_[works_.size()].buffer;
  works_.push_back(reduction_ == Reduction::all
                       ? communicator_.all_reduce(buffer, ReduceOp::sum, "gradients")
                       : communicator_.reduce_scatter(buffer, ReduceOp::sum, "gradients"));
}

Result<void> GradientReducer::finish() {
  last_backward_ = false;
  while (works_.size() < buckets_.size()) launch_next();
  Result<void> outcome;
  for (auto& work : works_) {
    auto done = work->wait();
    if (outcome && !done) outcome = std::move(done);
  }
  works_.clear();
  return outcome;
}

}  // namespace footplate
