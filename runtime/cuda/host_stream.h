#pragma once

#include <array>
#include <memory>

#include "runtime/base/thread.h"
#include "runtime/cuda/nccl_stream.h"

namespace footplate {

/// What a stream's handle points to where NCCL's library works in host memory, as the tests' stand-in does:
/// it hands over what is to run, and the stream runs it. C, for a library of its own.
struct HostStreamHandle {
  void (*enqueue)(HostStreamHandle* stream, void (*run)(void* argument), void* argument);
};

/// A stream without a device: one thread that runs what is enqueued. What never ends is left behind with its
/// thread at the end of the stream.
class HostStream final : public NcclStream {
 public:
  HostStream();
  ~HostStream() override;
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  nccl_abi::Stream handle() override;
  Result<bool> drain(std::chrono::microseconds at_most) override;
  std::span<float> scratch() override { return scratch_; }

 private:
  struct Shared;
  static void serve(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
  Thread thread_;
  std::array<float, 8> scratch_{};
};

}  // namespace footplate
