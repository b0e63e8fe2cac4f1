#include "runtime/cuda/device.h"

#include <dlfcn.h>

#include <string>

#include "protocol/layout.h"
#include "runtime/base/bundled_library.h"

namespace footplate {

int visible_cuda_devices() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return 0;
  const auto init = reinterpret_cast<int (*)(unsigned int)>(::dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(::dlsym(driver, "cuDeviceGetCount"));
  int devices = 0;
  if (init == nullptr || count == nullptr || init(0) != 0 || count(&devices) != 0) return 0;
  return devices;
}

Result<std::unique_ptr<CudaDevice>> open_cuda(const CudaOptions& options) {
  if (visible_cuda_devices() == 0)
    return fail(ErrorKind::usage,
                "no device can be used: this host has no driver (libcuda.so.1), or it shows no device to "
                "this process "
                "(CUDA_VISIBLE_DEVICES); footplate doctor tells which; run.device = \"cpu\" trains without");
  const std::string path = find_part(Part::cuda_library, own_folder()).string();
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(ErrorKind::usage,
                "no device can be used: " + loader_error() +
                    "; scripts/deps --cuda installs the CUDA libraries that LibTorch needs; "
                    "run.device = \"cpu\" trains without");
  const auto open = reinterpret_cast<OpenCudaDevice*>(::dlsym(library, kOpenCudaDevice));
  if (open == nullptr) return fail(ErrorKind::usage, path + " isn't footplate's: " + loader_error());
  Result<std::unique_ptr<CudaDevice>> device;
  open(options, device);
  return device;
}

}  // namespace footplate
