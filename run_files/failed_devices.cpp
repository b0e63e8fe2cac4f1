#include "run_files/failed_devices.h"

#include <algorithm>

#include "protocol/json_fields.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"

namespace footplate {
namespace {

Json to_json(const FailedDevice& device) {
  return {{"id", device.id},       {"description", device.description},
          {"host", device.host},   {"why", device.why},
          {"rank", device.rank},   {"origin", device.origin},
          {"start", device.start}, {"time", device.time}};
}

FailedDevice failed_device_from_json(const Json& json) {
  return {text_of(json, "id"),
          text_of(json, "description"),
          text_of(json, "host"),
          text_of(json, "why"),
          static_cast<int>(integer_of(json, "rank", 0)),
          static_cast<int>(integer_of(json, "origin", 0)),
          static_cast<int>(integer_of(json, "start", 0)),
          number_of(json, "time")};
}

}  // namespace

Result<void> add_failed_device(const std::filesystem::path& run_directory, const FailedDevice& device) {
  const std::filesystem::path folder = run_directory / kFailedDevicesFolder;
  std::error_code ignored;  // what can't be made can't be written into
  std::filesystem::create_directory(folder, ignored);
  return write_json_file(folder / (device.id + ".json"), to_json(device));
}

std::vector<FailedDevice> read_failed_devices(const std::filesystem::path& run_directory) {
  std::vector<FailedDevice> devices;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(run_directory / kFailedDevicesFolder, none)) {
    if (file.path().extension() != ".json") continue;
    const auto json = read_json_file(file.path());
    if (json && json->is_object()) devices.push_back(failed_device_from_json(*json));
  }
  std::ranges::sort(devices, {}, &FailedDevice::time);
  return devices;
}

std::vector<std::string> ids_of(const std::vector<FailedDevice>& devices) {
  std::vector<std::string> ids;
  for (const FailedDevice& device : devices) ids.push_back(device.id);
  return ids;
}

std::string name_of(const FailedDevice& device) {
  return device.id + " on " + device.host + ", " + device.description;
}

std::string why_lost(const std::filesystem::path& run_directory, int start, const std::vector<int>& origins) {
  std::string text;
  for (const FailedDevice& device : read_failed_devices(run_directory))
    if (device.start == start && std::ranges::find(origins, device.origin) != origins.end())
      text += (text.empty() ? "" : "; ") + name_of(device) + ", has failed: " + device.why;
  return text;
}

void forget_failed_devices(const std::filesystem::path& run_directory) {
  std::error_code ignored;
  std::filesystem::remove_all(run_directory / kFailedDevicesFolder, ignored);
}

}  // namespace footplate
