#include "runtime/train/buffer_reducer.h"

#include <cstdint>
#include <utility>

namespace footplate {

BufferReducer::BufferReducer(const std::vector<Parameter>& parameters, GradientBuffer& buffer,
                             Communicator& communicator, Reduction reduction)
    : parameters_(parameters),
      buffer_(buffer),
      communicator_(communicator),
      reduction_(reduction),
      hooks_(parameters, [this](const at::Tensor&, std::size_t number) { arrived(number); }) {}

void BufferReducer::configure(double bucket_mb, bool overlap) {
  overlap_ = overlap;
  const GradientLayout& layout = buffer_.layout();
  const std::int64_t at_least = elements_of_mb(bucket_mb);
  buckets_ = reduction_ == Reduction::all ? layout.buckets(at_least) : layout.buckets_of_stripes(at_least);
  arrivals_ = BucketArrivals(buckets_, layout.parameters());
}

void BufferReducer::expect_backward(bool last) {
  last_backward_ = overlap_ && last;
  if (last) arrivals_.begin();
}

void BufferReducer::arrived(std::size_t number) {
  if (!last_backward_) return;
  if (arrivals_.first_bucket(number) < works_.size())
    gradient_is_late(parameters_[buffer_.layout().declared(number)].name, "comm.overlap = \"off\"");
  if (!arrivals_.is_first(number)) return;
  for (std::size_t bucket = arrivals_.first_bucket(number); bucket < arrivals_.end_bucket(number); ++bucket)
    arrivals_.arrived_in(bucket);
  // In order: a later bucket that is complete waits for the earlier ones.
  const std::size_t at_once = buckets_.size() - (reduction_ == Reduction::all ? 1 : 0);
  while (works_.size() < at_once && arrivals_.is_complete(works_.size())) launch_next();
}

void BufferReducer::launch_next() {
  const bool is_last = works_.size() + 1 == buckets_.size();
  const Stretch& elements = buckets_[works_.size()].elements;
  if (reduction_ == Reduction::shares)
    works_.push_back(communicator_.reduce_scatter(buffer_.stretch(elements), ReduceOp::sum, "gradients"));
  else
    works_.push_back(
        communicator_.all_reduce(is_last ? buffer_.stretch_and_sums(elements) : buffer_.stretch(elements),
                                 ReduceOp::sum, "gradients"));
}

Result<void> BufferReducer::finish() {
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
