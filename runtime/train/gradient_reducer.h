#pragma once

#include "protocol/result.h"

namespace footplate {

/// Sums gradients over all ranks, bucket by bucket, in one order on every rank: unused parameters, empty
/// slices and failed ranks change nothing about it. With overlap, buckets are reduced while backward makes
/// the next; the sums are the same bit for bit either way.
class GradientReducer {
 public:
  virtual ~GradientReducer() = default;

  /// Between steps, at the same step on all ranks.
  virtual void configure(double bucket_mb, bool overlap) = 0;

  /// Before a step's first backward. `passes`: so many backward passes it has on the rank that has most.
  virtual void begin_step(int passes) = 0;
  /// Before each backward pass. `last`: it is this rank's last one in the step.
  virtual void expect_backward(bool last) = 0;
  /// After each; not where it failed.
  virtual void backward_done() = 0;

  /// Reduces what hasn't been reduced yet, also after a pass that failed. An error is the first bucket's.
  virtual Result<void> finish() = 0;
};

}  // namespace footplate
