#include "runtime/train/bucket_pool.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

#include "runtime/base/huge_pages.h"

namespace footplate {

void BucketPool::configure(std::vector<GradientLayout::Bucket> buckets, bool overlap) {
  buckets_ = std::move(buckets);
  overlap_ = overlap;
  std::int64_t largest = 0;
  for (const GradientLayout::Bucket& bucket : buckets_) largest = std::max(largest, bucket.elements.size());
  if (largest != elements_) free_.clear();
  elements_ = largest;
  may_grow_ = true;
  if (free_.empty()) give_back(take());
}

at::Tensor BucketPool::take() {
  if (free_.empty()) return make();
  at::Tensor memory = std::move(free_.back());
  free_.pop_back();
  return memory;
}

at::Tensor BucketPool::make() {
  try {
    at::Tensor memory = at::empty({elements_}, at::TensorOptions(at::kFloat).device(where_));
    if (where_.is_cpu())
      ask_for_huge_pages({static_cast<std::byte*>(memory.mutable_data_ptr()), memory.nbytes()});
    return memory;
  } catch (const std::exception&) {
    may_grow_ = false;
    throw;
  }
}

/// Those that are on their way, one that gradients arrive for, and the one that is next.
void BucketPool::trim() {
  if (free_.size() > on_their_way() + 2) free_.resize(on_their_way() + 2);
}

}  // namespace footplate
