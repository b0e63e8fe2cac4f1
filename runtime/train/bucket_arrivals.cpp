#include "runtime/train/bucket_arrivals.h"

#include <algorithm>

namespace footplate {

BucketArrivals::BucketArrivals(const std::vector<GradientLayout::Bucket>& buckets, std::size_t parameters)
    : first_bucket_(parameters, buckets.size()), end_bucket_(parameters, buckets.size()), there_(parameters) {
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    parameters_in_.push_back(buckets[bucket].last - buckets[bucket].first);
    for (std::size_t i = buckets[bucket].first; i < buckets[bucket].last; ++i) {
      first_bucket_[i] = std::min(first_bucket_[i], bucket);
      end_bucket_[i] = bucket + 1;
    }
  }
  missing_ = parameters_in_;
}

void BucketArrivals::begin() {
  missing_ = parameters_in_;
  there_.assign(there_.size(), false);
}

void BucketArrivals::arrived(std::size_t parameter) {
  if (there_[parameter]) return;
  there_[parameter] = true;
  for (std::size_t bucket = first_bucket_[parameter]; bucket < end_bucket_[parameter]; ++bucket)
    --missing_[bucket];
}

}  // namespace footplate
