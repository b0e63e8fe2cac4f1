#include "runtime/device/faulty_device.h"

#include <utility>

namespace footplate {

FaultyDevice::FaultyDevice(ComputeDevice& inner, std::string id,
                           std::function<std::optional<std::string>()> failure)
    : inner_(inner), id_(std::move(id)), failure_(std::move(failure)) {}

}  // namespace footplate
