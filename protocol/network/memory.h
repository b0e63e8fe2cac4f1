#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace footplate {

// What the system says about memory. The functions that take a `root` read below it ("/" for the real one).

/// Bytes. Nothing where the text lacks them.
struct MemoryReading {
  std::optional<std::int64_t> total;
  std::optional<std::int64_t> available;  ///< without swapping
};
MemoryReading parse_meminfo(std::string_view text);  ///< /proc/meminfo

/// What control groups (containers, Slurm, systemd) leave to this process; nothing: no limit.
struct GroupLimits {
  std::optional<std::int64_t> memory;       ///< bytes
  std::optional<std::int64_t> memory_left;  ///< bytes, of the group that has the least left
  std::optional<double> cores;              ///< processor seconds a second
};
/// Of the groups that /proc/self/cgroup names below `root`, of either version, and of all above them.
GroupLimits read_group_limits(const std::filesystem::path& root);

/// Bytes that this process can still take without swapping and within its control groups; nothing where the
/// system doesn't tell.
std::optional<std::int64_t> memory_left(const std::filesystem::path& root = "/");

}  // namespace footplate
