#include "runtime/train/bucket_arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

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

bool BucketArrivals::is_first(std::size_t parameter) {
  if (there_[parameter]) return false;
  there_[parameter] = true;
  return true;
}

void gradient_is_late(const std::string& parameter, const char* this_instead) {
  throw std::runtime_error(fmt::format(
      "the gradient of '{}' came twice in one backward pass, and is on its way to the other ranks already "
      "(a module that is used twice under checkpointing?); set {}",
      parameter, this_instead));
}

}  // namespace footplate
