#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "protocol/result.h"
#include "runtime/cuda/nccl_library.h"

namespace footplate {

/// Where NCCL's operations run, one after the other in the order in which they were enqueued, and how their
/// end is waited for: a HostStream, or on a device a stream of CUDA.
class NcclStream {
 public:
  virtual ~NcclStream() = default;

  /// What NCCL is given.
  virtual nccl_abi::Stream handle() = 0;

  /// Where the calling thread's computing stands; null where there is nothing to wait for. Any thread.
  using Mark = std::shared_ptr<const void>;
  virtual Mark mark() { return nullptr; }
  /// What is enqueued from here on is done after what was computed before `mark`. Error: the device has
  /// failed.
  virtual Result<void> follow(const Mark& /*mark*/) { return {}; }

  /// Waits until all that has been enqueued is done, at most `at_most`. Whether it is. Error: the device has
  /// failed. One thread at a time.
  virtual Result<bool> drain(std::chrono::microseconds at_most) = 0;

  /// Whether the device computes nothing any more for this process. Any thread.
  virtual bool has_failed() { return false; }

  /// A few floats that NCCL and the host reach: host memory, pinned where there is a device. Host thread's
  /// while nothing is enqueued.
  virtual std::span<float> scratch() = 0;
};

}  // namespace footplate
