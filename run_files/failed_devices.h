#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// A device that a rank couldn't use any more, and left the run for.
struct FailedDevice {
  std::string id;           ///< "GPU-5e3f…": the same for every process
  std::string description;  ///< "cuda:1 (NVIDIA H200, 139.8 GiB)"
  std::string host;
  std::string why;
  int rank = 0;    ///< as it was numbered then
  int origin = 0;  ///< and when the start began (Membership::origins)
  int start = 0;
  double time = 0;  ///< seconds since the epoch
};

// Those that have failed in this job, which takes none of them again: a file each, failed-devices/ID.json, by
// the rank that had it.

/// Errors (failed): the file can't be written.
Result<void> add_failed_device(const std::filesystem::path& run_directory, const FailedDevice& device);

/// In the order in which they failed. A file that can't be read is left out.
std::vector<FailedDevice> read_failed_devices(const std::filesystem::path& run_directory);

/// What each of them is called.
std::vector<std::string> ids_of(const std::vector<FailedDevice>& devices);
/// "GPU-5e3f… on n1, cuda:1 (NVIDIA H200, 139.8 GiB)".
std::string name_of(const FailedDevice& device);
/// Which devices `start` has lost with the ranks of these origins, in words; empty: none.
std::string why_lost(const std::filesystem::path& run_directory, int start, const std::vector<int>& origins);

/// A job begins: its devices are others, or have been repaired.
void forget_failed_devices(const std::filesystem::path& run_directory);

}  // namespace footplate
