#include "protocol/network/memory.h"

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>

#include "protocol/network/system_text.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kKibibyte = 1024;
/// Version 1 of control groups writes "no limit" as the largest number of pages.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

/// The number behind `name` in lines "name 12" or "name: 12 kB".
std::optional<std::int64_t> named_number(std::string_view text, const std::string& name) {
  for (const auto& line : lines_of(text)) {
    const auto words = words_of(line);
    if (words.size() >= 2 && (words[0] == name || words[0] == name + ":")) return leading_number(words[1]);
  }
  return std::nullopt;
}

template <class Number>
void keep_least(std::optional<Number>& least, const std::optional<Number>& value) {
  if (value && (!least || *value < *least)) least = value;
}

/// Where one version of control groups keeps its files, and what they are called there.
struct GroupFiles {
  const char *limit, *used, *cache;  ///< of memory; `cache` in memory.stat is given back when it is needed
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};

void read_memory_limit(const fs::path& group, const GroupFiles& files, GroupLimits& limits) {
  const auto limit = number_in(group / files.limit);  // "max" is no number
  if (!limit || *limit >= kNoLimit) return;
  keep_least(limits.memory, limit);
  const std::int64_t used = number_in(group / files.used).value_or(0) -
                            named_number(read_text(group / "memory.stat"), files.cache).value_or(0);
  keep_least(limits.memory_left,
             std::optional(std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, used))));
}

void read_core_limit(std::optional<std::int64_t> quota, std::optional<std::int64_t> period,
                     GroupLimits& limits) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return;
  keep_least(limits.cores, std::optional(static_cast<double>(*quota) / static_cast<double>(*period)));
}

/// `look` at the group's folder and at all above it up to `mount`. In a container the path may be the host's,
/// of which only the mount itself can be seen.
void for_each_group(const fs::path& mount, const std::string& path,
                    const std::function<void(const fs::path&)>& look) {
  fs::path group = path;
  while (group.has_relative_path()) {
    look(mount / group.relative_path());
    group = group.parent_path();
  }
  look(mount);
}

void read_version_2(const fs::path& mount, const std::string& path, GroupLimits& limits) {
  for_each_group(mount, path, [&](const fs::path& group) {
    read_memory_limit(group, kVersion2, limits);
    const auto words = words_of(read_text(group / "cpu.max"));  // "150000 100000"
    if (words.size() == 2) read_core_limit(leading_number(words[0]), leading_number(words[1]), limits);
  });
}

void read_version_1(const fs::path& base, const std::string& controllers, const std::string& path,
                    GroupLimits& limits) {
  std::istringstream list(controllers);
  for (std::string controller; std::getline(list, controller, ',');) {
    if (controller != "memory" && controller != "cpu") continue;
    fs::path mount = base / controller;
    std::error_code ignored;
    if (!fs::exists(mount, ignored)) mount = base / controllers;
    for_each_group(mount, path, [&](const fs::path& group) {
      if (controller == "memory") read_memory_limit(group, kVersion1, limits);
      if (controller == "cpu")
        read_core_limit(number_in(group / "cpu.cfs_quota_us"), number_in(group / "cpu.cfs_period_us"),
                        limits);
    });
  }
}

}  // namespace

MemoryReading parse_meminfo(std::string_view text) {
  MemoryReading memory{named_number(text, "MemTotal"), named_number(text, "MemAvailable")};
  if (memory.total) *memory.total *= kKibibyte;
  if (memory.available) *memory.available *= kKibibyte;
  return memory;
}

GroupLimits read_group_limits(const fs::path& root) {
  GroupLimits limits;
  const fs::path base = root / "sys/fs/cgroup";
  for (const auto& line : lines_of(read_text(root / "proc/self/cgroup"))) {
    // "4:memory:/slurm/job_7"; version 2 is "0::/user.slice"
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty())
      read_version_2(base, path, limits);
    else
      read_version_1(base, controllers, path, limits);
  }
  return limits;
}

std::optional<std::int64_t> memory_left(const fs::path& root) {
  auto left = parse_meminfo(read_text(root / "proc/meminfo")).available;
  keep_least(left, read_group_limits(root).memory_left);
  return left;
}

}  // namespace footplate
