#include "runtime/cuda/library/stream.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <string>
#include <thread>

#include "runtime/base/clock.h"

namespace footplate {
namespace {

constexpr std::size_t kScratch = 8;  ///< floats

/// PollPause at the device without a pause between them, then with one.
constexpr int kEagerLooks = 200;
constexpr std::chrono::microseconds kPause{20};

Error device_error(const char* what, cudaError_t status) {
  return {ErrorKind::failed, std::string("the device has failed, ") + what + ": " +
                                 cudaGetErrorString(status) + "; this process can't use it any more"};
}

struct Event {
  Event() { C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)); }
  ~Event() { static_cast<void>(cudaEventDestroy(event)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t event = nullptr;
};

}  // namespace

std::optional<std::string> error_that_sticks(const c10::cuda::CUDAStream& stream) {
  static_cast<void>(cudaGetLastError());  // one that doesn't stick is gone now
  const cudaError_t status = cudaStreamQuery(stream.stream());
  static_cast<void>(cudaGetLastError());  // else LibTorch takes it for its own
  if (status == cudaSuccess || status == cudaErrorNotReady) return std::nullopt;
  return cudaGetErrorString(status);
}

CudaNcclStream::CudaNcclStream(c10::DeviceIndex device)
    : device_(device), stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device)) {
  C10_CUDA_CHECK(cudaHostAlloc(&scratch_, kScratch * sizeof(float), cudaHostAllocPortable));
}

CudaNcclStream::~CudaNcclStream() {
  static_cast<void>(cudaFreeHost(scratch_));
}

std::span<float> CudaNcclStream::scratch() {
  return {static_cast<float*>(scratch_), kScratch};
}

NcclStream::Mark CudaNcclStream::mark() {
  const c10::cuda::CUDAGuard guard(device_);
  auto here = std::make_shared<Event>();
  C10_CUDA_CHECK(cudaEventRecord(here->event, c10::cuda::getCurrentCUDAStream(device_).stream()));
  return here;
}

Result<void> CudaNcclStream::follow(const Mark& mark) {
  if (mark == nullptr) return {};
  const auto& event = *static_cast<const Event*>(mark.get());
  if (const cudaError_t status = cudaStreamWaitEvent(stream_.stream(), event.event, 0); status != cudaSuccess)
    return tl::unexpected(device_error("waiting for gradients", status));
  return {};
}

Result<bool> CudaNcclStream::drain(std::chrono::microseconds at_most) {
  const auto until = SteadyClock::now() + at_most;
  for (int looks = 0;; ++looks) {
    const cudaError_t status = cudaStreamQuery(stream_.stream());
    if (status == cudaSuccess) return true;
    if (status != cudaErrorNotReady) return tl::unexpected(device_error("reducing gradients", status));
    static_cast<void>(cudaGetLastError());  // else LibTorch takes it for its own
    if (SteadyClock::now() >= until) return false;
    if (looks < kEagerLooks)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPause);
  }
}

}  // namespace footplate
