#pragma once

#include <memory>
#include <string>
#include <vector>

#include "protocol/result.h"
#include "runtime/cuda/nccl_stream.h"
#include "runtime/device/compute_device.h"

namespace footplate {

/// A GPU that this process trains on. What it computes goes to the calling thread's current stream of
/// LibTorch's, what NCCL does to a stream of its own.
class CudaDevice : public ComputeDevice {
 public:
  virtual NcclStream& nccl_stream() = 0;
};

struct CudaOptions {
  /// Which of the visible devices that aren't left out; -1: the one of them with the most free memory.
  int index = 0;
  int taken = 0;                           ///< with -1: so many of those are other ranks'
  bool deterministic = false;              ///< run.deterministic
  std::vector<std::string> left_out = {};  ///< by ComputeDevice::id
};

/// How many devices the driver shows to this process (CUDA_VISIBLE_DEVICES counts); 0 without a driver.
/// Starts nothing on them.
int visible_cuda_devices();

/// Opens libfootplate_cuda.so, and with it LibTorch's CUDA kernels: what the processors never load. Once per
/// process, before other threads use LibTorch. Errors (usage): the library, or one that it needs, isn't
/// there; no such device; the driver is too old. With what to do.
Result<std::unique_ptr<CudaDevice>> open_cuda(const CudaOptions& options);

/// What that library exports under the name below, built with this program and with nothing else.
using OpenCudaDevice = void(const CudaOptions& options, Result<std::unique_ptr<CudaDevice>>& device);
inline constexpr const char* kOpenCudaDevice = "footplate_open_cuda_device";

}  // namespace footplate
