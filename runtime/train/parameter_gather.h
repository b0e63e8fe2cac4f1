#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/optim/optimizer_share.h"
#include "runtime/train/bucket_pool.h"
#include "runtime/train/gradient_buffer.h"

namespace footplate {

/// How all ranks get the parameters that each of them has updated its share of. Training thread.
class ParameterGather {
 public:
  virtual ~ParameterGather() = default;
  /// Errors: as of an operation; then some parameters may be there and others not.
  virtual Result<void> run() = 0;
};

/// In the buffer of the gradients, which nobody needs any more by then, at once.
class BufferGather final : public ParameterGather {
 public:
  /// All outlive it.
  BufferGather(const std::vector<Parameter>& parameters, const GradientBuffer& buffer,
               const ShareOfRank& mine, Communicator& communicator);
  Result<void> run() override;

 private:
  const GradientBuffer& buffer_;
  Communicator& communicator_;
  std::vector<at::Tensor> own_values_, own_places_;  ///< of parameters, and where they travel
  std::vector<at::Tensor> values_, places_;          ///< the same of all ranks
};

/// In the memory of a few buckets, one after the other.
class BucketGather final : public ParameterGather {
 public:
  /// All outlive it.
  BucketGather(const std::vector<Parameter>& parameters, const ShareOfRank& mine, BucketPool& pool,
               Communicator& communicator);
  Result<void> run() override;

 private:
  /// A bucket on its way.
  struct Sent {
    std::size_t bucket = 0;
    at::Tensor memory;
    std::unique_ptr<Work> gathered;
  };
  void launch(std::size_t bucket);
  void receive(Result<void>& outcome);

  const std::vector<Parameter>& parameters_;
  const ShareOfRank& mine_;
  BucketPool& pool_;
  Communicator& communicator_;
  std::deque<Sent> sent_;  ///< in order
};

}  // namespace footplate
