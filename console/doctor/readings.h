#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/network/memory.h"
#include "protocol/network/network.h"
#include "protocol/network/system_text.h"

namespace footplate {

// What the system says about itself, as text, and what it means. The functions that take a `root` read below
// it ("/" for the real one), so that every kind of machine can be shown to them. Nothing here changes or
// sends anything.

/// NVIDIA devices and the two halves of the driver, which have to be of one version.
struct DeviceReading {
  std::vector<std::string> models;  ///< one for each device
  std::string module;               ///< version of the kernel's half: "570.86.10"; empty: none is loaded
  /// Version of libcuda.so; its path where its name has no version; empty: none is installed.
  std::string library;
};
DeviceReading read_devices(const std::filesystem::path& root);
/// The same of the libcuda.so that this process' loader finds, which knows more folders than those of a
/// distribution: a container's driver is often mounted elsewhere.
std::string find_driver_library();
/// How many of them a process with this CUDA_VISIBLE_DEVICES sees (null: it isn't set). As with CUDA: what
/// comes after an entry that isn't one doesn't count.
int visible_devices(const DeviceReading& devices, const char* selection);
std::string parse_driver_version(std::string_view text);  ///< /proc/driver/nvidia/version

/// What becomes of a user's processes at the last logout.
struct LogoutReading {
  bool has_logind = false;
  bool kills = false;    ///< KillUserProcesses, for this user
  bool lingers = false;  ///< loginctl enable-linger
};
LogoutReading read_logout(const std::filesystem::path& root, const std::string& user);
/// The last KillUserProcesses= of a logind.conf, or what its comment names as the default; nothing: neither.
std::optional<bool> parse_kill_user_processes(std::string_view text);

}  // namespace footplate
