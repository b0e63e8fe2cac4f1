#pragma once

#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/train/arrival_hooks.h"
#include "runtime/train/bucket_arrivals.h"
#include "runtime/train/gradient_buffer.h"
#include "runtime/train/gradient_reducer.h"

namespace footplate {

/// What becomes of the gradients.
enum class Reduction {
  all,     ///< every rank gets all sums
  shares,  ///< each rank gets its share of them (comm/shares.h); StepSums stay with whoever cuts them
};

/// Of gradients that are all in the buffer. They go once a step: with overlap a bucket goes as soon as the
/// last backward pass has made its last gradient. Where the last bucket carries the step's verdict it waits
/// for finish(). Training thread, also where hooks run in another one.
class BufferReducer final : public GradientReducer {
 public:
  /// Installs a hook on every parameter; all that is referred to outlives the reducer.
  BufferReducer(const std::vector<Parameter>& parameters, GradientBuffer& buffer, Communicator& communicator,
                Reduction reduction);

  void configure(double bucket_mb, bool overlap) override;
  void begin_step(int /*passes*/) override {}
  void expect_backward(bool last) override;
  void backward_done() override {}
  Result<void> finish() override;

 private:
  void arrived(std::size_t number);
  void launch_next();

  const std::vector<Parameter>& parameters_;
  GradientBuffer& buffer_;
  Communicator& communicator_;
  const Reduction reduction_;
  bool overlap_ = false;
  bool last_backward_ = false;
  std::vector<GradientLayout::Bucket> buckets_;
  BucketArrivals arrivals_;
  std::vector<std::unique_ptr<Work>> works_;  ///< launched ones, in order
  ArrivalHooks hooks_;
};

}  // namespace footplate
