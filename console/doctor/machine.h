#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "console/doctor/finding.h"
#include "console/doctor/readings.h"
#include "console/doctor/trial_answers_json.h"

namespace footplate {

// What the readings of a machine mean for a run. Each function says good, or what to mend and how; none looks
// at anything itself.

Check check_memory(const MemoryReading& memory, const GroupLimits& limits);

/// The cores of the machine and those that this process may run on.
struct CoresReading {
  int online = 0;
  int allowed = 0;
};
Check check_cores(const CoresReading& cores, const GroupLimits& limits);

Check check_devices(const DeviceReading& devices);
Check check_network(const NetworkReading& network);

/// Room in the file system of a folder, in bytes. Nothing: it isn't there or can't be written.
struct Room {
  std::filesystem::path folder;
  std::optional<std::int64_t> size;
  std::int64_t free = 0;
};
Check check_shared_memory(const Room& shared_memory);
/// `runs`: where run directories go; `temporary`: where sockets and Open MPI's files go.
Check check_disk(const Room& runs, const Room& temporary);

/// Limits of this process. Nothing: unlimited.
struct ProcessLimits {
  std::optional<std::int64_t> locked_memory;  ///< bytes
  std::optional<std::int64_t> open_files;
};
/// `registers`: there are adapters or devices that data is sent from without copying, out of locked memory.
Check check_limits(const ProcessLimits& limits, bool registers);

Check check_logout(const LogoutReading& logout, const std::string& user);

/// What footplate-rank says about its libraries (`footplate-rank --doctor versions`), and what the build was
/// pinned to.
struct Libraries {
  LibrariesAnswer found;
  std::string own_version;  ///< of this program
  std::string pinned_torch, pinned_mpi;
  std::string lua;
  std::vector<std::string> missing = {};  ///< programs of footplate that aren't beside this one
};
Check check_versions(const Libraries& libraries);
/// `root` as in readings.h: the environment's folder is looked at.
Check check_environment(const Libraries& libraries, const std::filesystem::path& root);

/// Readings of the machine that this process runs on, which no file tells.
CoresReading read_cores();
ProcessLimits read_limits();
/// Of `folder`, or of the nearest folder above it that exists.
Room read_room(const std::filesystem::path& folder);
/// The name of the user, or the number where there is none.
std::string read_user();

/// Bytes that can be used now: what the machine has, and what control groups leave of it. Nothing: unknown.
std::optional<std::int64_t> usable_memory(const MemoryReading& memory, const GroupLimits& limits);

}  // namespace footplate
