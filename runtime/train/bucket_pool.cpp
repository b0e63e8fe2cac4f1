#include "runtime/train/bucket_pool.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

namespace footplate {

void BucketPool::configure(std::vector<GradientLayout::Bucket> buckets, bool overlap) {
  buckets_ = std::move(buckets);
  overlap_ = overlap;
  std::int64_t largest = 0;
  for (const GradientLayout::Bucket& bucket : buckets_) largest = std::max(largest, bucket.elements.size());
  if (largest != elements_) free_.clear();
  elements_ = largest;
  if (free_.empty()) give_back(take());
}

at::Tensor BucketPool::take() {
  if (free_.empty()) return at::empty({elements_}, at::TensorOptions(at::kFloat).device(where_));
  at::Tensor memory = std::move(free_.back());
  free_.pop_back();
  return memory;
}

}  // namespace footplate
