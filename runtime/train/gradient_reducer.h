#pragma once

#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/train/gradient_buffer.h"
#include "runtime/train/step_settings.h"

namespace footplate {

/// What becomes of the gradients.
enum class Reduction {
  all,     ///< every rank gets all sums
  shares,  ///< each rank gets its share of them (comm/shares.h); StepSums stay with whoever cuts them
};

/// Sums the gradient buffer over all ranks, bucket by bucket, in one order on every rank: unused
/// parameters, empty slices and failed ranks change nothing about it. With overlap a bucket goes as
/// soon as backward has made its last gradient; the sums are the same bit for bit either way. Where the last
/// bucket carries the step's verdict it waits for finish().
class GradientReducer {
 public:
  /// Installs a hook on every parameter; all that is referred to outlives the reducer.
  GradientReducer(const std::vector<Parameter>& parameters, GradientBuffer& buffer,
                  Communicator& communicator, Reduction reduction = Reduction::all);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// Between steps, at the same step on all ranks.
  void configure(double bucket_mb, bool overlap);

  /// Before the last backward of a step: gradients that arrive from here on are complete.
  void expect_last_backward();

  /// Launches what hasn't been launched yet, and waits for all of it. An error is the first bucket's.
  Result<void> finish();

 private:
  class ArrivalHook;
  void arrived(std::size_t parameter);
  void launch_next();

  const std::vector<Parameter>& parameters_;
  GradientBuffer& buffer_;
  Communicator& communicator_;
  const Reduction reduction_;
  bool overlap_ = false;
  bool last_backward_ = false;
  std::vector<GradientBuffer::Bucket> buckets_;
  std::vector<std::size_t> first_bucket_;     ///< that a parameter is in, by reversed order
  std::vector<std::size_t> missing_;          ///< gradients that haven't arrived, by bucket
  std::vector<std::unique_ptr<Work>> works_;  ///< launched ones, in order
};

}  // namespace footplate
