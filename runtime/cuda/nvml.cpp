#include "runtime/cuda/nvml.h"

#include <dlfcn.h>

#include <chrono>

namespace footplate {
namespace {

// As in nvml.h of CUDA's toolkit, which isn't needed to build (docs.nvidia.com/deploy/nvml-api). Functions of
// that name keep these types: what changes gets a name with another number at its end.
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlTemperatureGpu = 0;
using NvmlDevice = struct nvmlDevice_st*;
struct NvmlUtilization {
  unsigned int gpu, memory;  ///< percent
};
struct NvmlMemory {
  unsigned long long total, free, used;  ///< bytes
};

struct NvmlFunctions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*handle)(const char*, NvmlDevice*) = nullptr;
  int (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*power)(NvmlDevice, unsigned int*) = nullptr;
  int (*temperature)(NvmlDevice, int, unsigned int*) = nullptr;
};

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, NvmlFunctions& nvml) {
  return find(library, "nvmlInit_v2", nvml.init) && find(library, "nvmlShutdown", nvml.shutdown) &&
         find(library, "nvmlErrorString", nvml.error_string) &&
         find(library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.handle) &&
         find(library, "nvmlDeviceGetUtilizationRates", nvml.utilization) &&
         find(library, "nvmlDeviceGetMemoryInfo", nvml.memory) &&
         find(library, "nvmlDeviceGetPowerUsage", nvml.power) &&
         find(library, "nvmlDeviceGetTemperature", nvml.temperature);
}

class NvmlGauges final : public Gauges {
 public:
  NvmlGauges(const NvmlFunctions& nvml, NvmlDevice device) : nvml_(nvml), device_(device) {}
  ~NvmlGauges() override { nvml_.shutdown(); }
  NvmlGauges(const NvmlGauges&) = delete;
  NvmlGauges& operator=(const NvmlGauges&) = delete;

  GaugeReading read() override {
    GaugeReading now;
    NvmlUtilization used{};
    NvmlMemory memory{};
    unsigned int milliwatts = 0, celsius = 0;
    if (nvml_.utilization(device_, &used) == kNvmlSuccess) now.utilisation = used.gpu;
    if (nvml_.memory(device_, &memory) == kNvmlSuccess)
      now.memory_mib = static_cast<double>(memory.used) / (1 << 20);
    if (nvml_.power(device_, &milliwatts) == kNvmlSuccess) now.power_w = milliwatts / 1e3;
    if (nvml_.temperature(device_, kNvmlTemperatureGpu, &celsius) == kNvmlSuccess)
      now.temperature_c = celsius;
    return now;
  }

  /// Utilisation and power are NVML's means over up to a second.
  std::chrono::milliseconds renewed_every() const override { return std::chrono::seconds(1); }

 private:
  const NvmlFunctions nvml_;
  const NvmlDevice device_;
};

}  // namespace

/// The library stays in the process: others may have it open as well.
Result<std::unique_ptr<Gauges>> open_nvml(const std::string& bus_id, const std::string& library) {
  void* opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* why = ::dlerror();
    return fail(ErrorKind::failed, "the driver's library can't be used: " + std::string(why ? why : library));
  }
  NvmlFunctions nvml;
  if (!find_all(opened, nvml)) return fail(ErrorKind::failed, library + " is no NVML that footplate knows");
  if (const int status = nvml.init(); status != kNvmlSuccess)
    return fail(ErrorKind::failed, "NVML doesn't start: " + std::string(nvml.error_string(status)));
  NvmlDevice device = nullptr;
  if (const int status = nvml.handle(bus_id.c_str(), &device); status != kNvmlSuccess) {
    const std::string why = nvml.error_string(status);
    nvml.shutdown();
    return fail(ErrorKind::failed, "NVML has no device " + bus_id + ": " + why);
  }
  return std::make_unique<NvmlGauges>(nvml, device);
}

}  // namespace footplate
