// A libnvidia-ml with two devices: one that tells all, and one that is divided and tells less.
#include <cstring>

namespace {

constexpr int kNotSupported = 3, kNotFound = 6;
int opened = 0;

struct Device {
  const char* bus_id;
  bool divided;
};
Device devices[] = {{"0000:3b:00.0", false}, {"0000:5e:00.0", true}};

}  // namespace

extern "C" {

struct Utilization {
  unsigned int gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};

int nvmlInit_v2() {
  ++opened;
  return 0;
}
int nvmlShutdown() {
  --opened;
  return 0;
}
const char* nvmlErrorString(int status) {
  return status == kNotFound ? "Not Found" : "Not Supported";
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Device** device) {
  for (Device& one : devices)
    if (std::strcmp(one.bus_id, bus_id) == 0) {
      *device = &one;
      return 0;
    }
  return kNotFound;
}
int nvmlDeviceGetUtilizationRates(Device* device, Utilization* now) {
  if (device->divided) return kNotSupported;
  *now = {93, 41};
  return 0;
}
int nvmlDeviceGetMemoryInfo(Device* /*device*/, Memory* now) {
  *now = {80ULL << 30, 60ULL << 30, 20ULL << 30};
  return 0;
}
int nvmlDeviceGetPowerUsage(Device* /*device*/, unsigned int* milliwatts) {
  *milliwatts = 412500;
  return 0;
}
int nvmlDeviceGetTemperature(Device* /*device*/, int sensor, unsigned int* celsius) {
  if (sensor != 0) return kNotSupported;
  *celsius = 61;
  return 0;
}
int nvml_stub_opened() {
  return opened;
}

}  // extern "C"
