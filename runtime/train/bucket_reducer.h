#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/optim/optimizer_share.h"
#include "runtime/train/arrival_hooks.h"
#include "runtime/train/bucket_arrivals.h"
#include "runtime/train/bucket_pool.h"
#include "runtime/train/gradient_reducer.h"
#include "runtime/train/phase_timer.h"

namespace footplate {

/// Of gradients of which a rank keeps its share only, and that of its copy (optim.shard = 2). In every
/// backward pass each gradient goes into its buckets as soon as it is made, and its own memory is free again;
/// a bucket that is complete is reduced, and of what comes back the rank adds its share to those of the
/// passes before. A rank with fewer passes than others takes part in theirs with zeros. The thread that
/// computes backward waits for the ranks where more buckets are complete than may be on their way at once.
/// Training thread, also where hooks run in another one.
class BucketReducer final : public GradientReducer {
 public:
  /// Installs a hook on every parameter; all that is referred to outlives the reducer. `copies_from`: as of
  /// StepShare.
  BucketReducer(const std::vector<Parameter>& parameters, const KeptShares& kept, int copies_from,
                BucketPool& pool, Communicator& communicator, PhaseTimer& timer);

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
  void add_to_buckets(const at::Tensor& gradient, std::size_t number);
  at::Tensor& memory_of(std::size_t bucket);
  at::Tensor take();
  void launch_next();
  void end_pass();
  void receive();
  void keep(const ShareOfRank& share, const Sent& sent) const;

  const std::vector<Parameter>& parameters_;
  const KeptShares& kept_;
  const int copies_from_;
  BucketPool& pool_;
  Communicator& communicator_;
  PhaseTimer& timer_;
  BucketArrivals arrivals_;
  std::map<std::size_t, at::Tensor> open_;  ///< by bucket: those that gradients have arrived for
  std::deque<Sent> sent_;                   ///< in order
  std::size_t launched_ = 0;                ///< of the pass under way
  int passes_ = 1, pass_ = 0;               ///< those of the step; and so many of them are done
  bool in_backward_ = false;
  Result<void> outcome_;
  ArrivalHooks hooks_;
};

}  // namespace footplate
