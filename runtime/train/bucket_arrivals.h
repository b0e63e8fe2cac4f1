#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/optim/gradient_layout.h"

namespace footplate {

/// Which buckets have all gradients of a backward pass. Parameters go by reversed order.
class BucketArrivals {
 public:
  BucketArrivals() = default;
  BucketArrivals(const std::vector<GradientLayout::Bucket>& buckets, std::size_t parameters);

  /// Of the pass to come nothing has arrived.
  void begin();
  /// A gradient comes. False: it has come before in this pass.
  bool is_first(std::size_t parameter);
  /// It is there in one of its buckets.
  void arrived_in(std::size_t bucket) { --missing_[bucket]; }
  bool is_complete(std::size_t bucket) const { return missing_[bucket] == 0; }
  /// The first bucket that a parameter is in; without elements it is in none, and this is their number.
  std::size_t first_bucket(std::size_t parameter) const { return first_bucket_[parameter]; }
  /// One more than its last.
  std::size_t end_bucket(std::size_t parameter) const { return end_bucket_[parameter]; }

 private:
  std::vector<std::size_t> parameters_in_;  ///< by bucket
  std::vector<std::size_t> missing_;        ///< gradients that haven't arrived, by bucket
  std::vector<std::size_t> first_bucket_, end_bucket_;
  std::vector<bool> there_;  ///< by parameter
};

/// A gradient comes once more after it was sent, as of a module that is used twice under checkpointing, which
/// computes it in two parts. Throws that, and to do `this_instead`.
[[noreturn]] void gradient_is_late(const std::string& parameter, const char* this_instead);

}  // namespace footplate
