#pragma once

#include <memory>
#include <string>

#include "protocol/result.h"
#include "runtime/device/gauges.h"

namespace footplate {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

/// The gauges of the device at that place of the PCI bus ("0000:3b:00.0"), as NVML reads them: the driver
/// brings that library. Opened now, and closed with the gauges. What it doesn't support (utilisation of a
/// device that is divided, MIG) isn't in the readings. Errors: there is no such library or no such device
/// there. Any thread.
Result<std::unique_ptr<Gauges>> open_nvml(const std::string& bus_id,
                                          const std::string& library = kNvmlLibrary);

}  // namespace footplate
