#include "run_files/failed_devices.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "protocol/json_fields.h"
#include "run_files/file_names.h"

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

/// One write: others may add theirs at that moment.
Result<void> add_failed_device(const std::filesystem::path& run_directory, const FailedDevice& device) {
  const std::filesystem::path path = run_directory / kFailedDevicesFile;
  const std::string line = to_json(device).dump() + "\n";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool written =
      file >= 0 && ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int why = errno;
  if (file >= 0) ::close(file);
  if (written) return {};
  return fail(ErrorKind::failed, path.string() + " can't be written: " + std::strerror(why));
}

std::vector<FailedDevice> read_failed_devices(const std::filesystem::path& run_directory) {
  std::vector<FailedDevice> devices;
  std::ifstream file(run_directory / kFailedDevicesFile);
  for (std::string line; std::getline(file, line);) {
    const auto json = parse_line(line);
    if (!json || !json->is_object()) continue;
    FailedDevice device = failed_device_from_json(*json);
    if (!device.id.empty()) devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<std::string> ids_of(const std::vector<FailedDevice>& devices) {
  std::vector<std::string> ids;
  for (const FailedDevice& device : devices) ids.push_back(device.id);
  return ids;
}

std::string name_of(const FailedDevice& device) {
  return device.id + " on " + device.host + ", " + device.description + ",";
}

std::string why_lost(const std::filesystem::path& run_directory, int start, const std::vector<int>& origins) {
  std::string text;
  for (const FailedDevice& device : read_failed_devices(run_directory))
    if (device.start == start && std::ranges::find(origins, device.origin) != origins.end())
      text += (text.empty() ? "" : "; ") + name_of(device) + " has failed: " + device.why;
  return text;
}

void forget_failed_devices(const std::filesystem::path& run_directory) {
  std::error_code ignored;
  std::filesystem::remove(run_directory / kFailedDevicesFile, ignored);
}

}  // namespace footplate
