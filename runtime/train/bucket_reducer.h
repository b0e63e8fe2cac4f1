#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "protocol/mutex.h"
#include "runtime/comm/communicator.h"
#include "runtime/optim/optimizer_share.h"
#include "runtime/train/arrival_hooks.h"
#include "runtime/train/bucket_arrivals.h"
#include "runtime/train/bucket_pool.h"
#include "runtime/train/gradient_reducer.h"
#include "runtime/train/phase_timer.h"

namespace footplate {

/// Sums gradients where a rank keeps only its share of them, and that of its copy (optim.shard = 2). In every
/// backward pass each gradient goes into its buckets as soon as it is made, and its own memory is free again.
/// A bucket that is complete is reduced. Of what comes back the rank adds its share to those of the passes
/// before. A rank with fewer passes than others takes part in theirs with zeros. The thread that computes
/// backward waits for the ranks where more buckets are complete than may be on their way at once. Training
/// thread; hooks run in the thread that computes backward, which another one may be.
class BucketReducer final : public GradientReducer {
 public:
  /// Installs a hook on every parameter; all that is referred to outlives the reducer. `copies_from`: as of
  /// StepShare.
  BucketReducer(const std::vector<Parameter>& parameters, const KeptShares& kept, int copies_from,
                BucketPool& pool, Communicator& communicator, PhaseTimer& timer);
  ~BucketReducer() override;
  BucketReducer(const BucketReducer&) = delete;
  BucketReducer& operator=(const BucketReducer&) = delete;

  void configure(double bucket_mb, bool overlap) override;
  void begin_step(int passes) override;
  void expect_backward(bool last) override;
  void backward_done() override;
  Result<void> finish() override;

 private:
  /// A bucket on its way.
  struct Sent {
    std::size_t bucket = 0;
    bool is_first = true;  ///< of the passes of the step
    at::Tensor memory;
    std::unique_ptr<Work> reduced, copied;  ///< copied: null without copies
  };

  void arrived(const at::Tensor& parameter, std::size_t number);
  at::Tensor& memory_of(std::size_t bucket) REQUIRES(mutex_);
  at::Tensor take() REQUIRES(mutex_);
  void launch_next() REQUIRES(mutex_);
  void end_pass() REQUIRES(mutex_);
  void receive() REQUIRES(mutex_);
  void keep(const ShareOfRank& share, const Sent& sent) const;

  const std::vector<Parameter>& parameters_;
  const KeptShares& kept_;
  const int copies_from_;
  BucketPool& pool_;  ///< with mutex_, while a step runs
  Communicator& communicator_;
  PhaseTimer& timer_;
  /// Of a pass that fails in one thread another may still compute a part.
  Mutex mutex_;
  BucketArrivals arrivals_ GUARDED_BY(mutex_);
  /// By bucket: those that gradients have arrived for.
  std::map<std::size_t, at::Tensor> open_ GUARDED_BY(mutex_);
  std::deque<Sent> sent_ GUARDED_BY(mutex_);     ///< in order
  std::size_t launched_ GUARDED_BY(mutex_) = 0;  ///< of the pass under way
  int passes_ GUARDED_BY(mutex_) = 1;            ///< of the step
  int pass_ GUARDED_BY(mutex_) = 0;              ///< so many of them are done
  bool in_backward_ GUARDED_BY(mutex_) = false;
  Result<void> outcome_ GUARDED_BY(mutex_);
  ArrivalHooks hooks_;
};

}  // namespace footplate
