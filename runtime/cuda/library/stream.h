#pragma once

#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <optional>
#include <string>

#include "runtime/cuda/nccl_stream.h"

namespace footplate {

/// Why this process can compute nothing on a stream's device any more; nothing: it can. An error that sticks
/// is what every call returns from then on. Doesn't wait.
std::optional<std::string> error_that_sticks(const c10::cuda::CUDAStream& stream);

/// NCCL's stream on a device. It doesn't wait for what is computed, but where follow() says so.
class CudaNcclStream final : public NcclStream {
 public:
  explicit CudaNcclStream(c10::DeviceIndex device);
  ~CudaNcclStream() override;
  CudaNcclStream(const CudaNcclStream&) = delete;
  CudaNcclStream& operator=(const CudaNcclStream&) = delete;

  nccl_abi::Stream handle() override { return stream_.stream(); }
  Mark mark() override;
  Result<void> follow(const Mark& mark) override;
  bool has_failed() override { return error_that_sticks(stream_).has_value(); }
  Result<bool> drain(std::chrono::microseconds at_most) override;
  std::span<float> scratch() override;

 private:
  const c10::DeviceIndex device_;
  const c10::cuda::CUDAStream stream_;
  void* scratch_ = nullptr;  ///< pinned
};

}  // namespace footplate
