#include "console/doctor/readings.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <sstream>

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

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

/// "570.86.10" of "libcuda.so.570.86.10"; empty for libcuda.so.1 and other names.
std::string library_version(const std::string& name) {
  constexpr std::string_view kStem = "libcuda.so.";
  if (!starts_with(name, kStem)) return {};
  const std::string version = name.substr(kStem.size());
  return version.find('.') == std::string::npos ? "" : version;
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

std::string parse_driver_version(std::string_view text) {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  Thu Jan 23 …", of the open one "… Kernel
  // Module for x86_64  570.86.10  Release Build …"
  for (const auto& line : lines_of(text)) {
    if (!starts_with(line, "NVRM version:")) continue;
    for (const auto& word : words_of(line))
      if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos)
        return word;
  }
  return {};
}

DeviceReading read_devices(const fs::path& root) {
  DeviceReading devices;
  const fs::path driver = root / "proc/driver/nvidia";
  devices.module = parse_driver_version(read_text(driver / "version"));
  for (const auto& name : names_in(driver / "gpus")) {
    std::string model = "NVIDIA device";
    for (const auto& line : lines_of(read_text(driver / "gpus" / name / "information")))
      if (starts_with(line, "Model:")) model = line.substr(line.find_first_not_of(" \t", 6));
    devices.models.push_back(model);
  }
  for (const char* folder : {"usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib", "usr/lib/aarch64-linux-gnu"})
    for (const auto& name : names_in(root / folder))
      if (devices.library.empty()) devices.library = library_version(name);
  return devices;
}

std::string find_driver_library() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return {};
  Dl_info found{};
  std::error_code error;
  fs::path file = "libcuda.so.1";
  if (void* symbol = ::dlsym(library, "cuInit"); symbol != nullptr && ::dladdr(symbol, &found) != 0)
    file = fs::canonical(found.dli_fname, error);
  if (error) file = found.dli_fname;
  ::dlclose(library);
  const std::string version = library_version(file.filename());
  return version.empty() ? file.string() : version;
}

int visible_devices(const DeviceReading& devices, const char* selection) {
  const int all = static_cast<int>(devices.models.size());
  if (selection == nullptr || all == 0) return all;
  int visible = 0;
  std::istringstream entries{selection};
  for (std::string entry; std::getline(entries, entry, ',') && visible < all; ++visible) {
    int index = -1;
    const auto read = std::from_chars(entry.data(), entry.data() + entry.size(), index);
    const bool is_index = read.ec == std::errc() && read.ptr == entry.data() + entry.size();
    const bool is_name = starts_with(entry, "GPU-") || starts_with(entry, "MIG-");
    if (!is_name && !(is_index && index >= 0 && index < all)) break;
  }
  return visible;
}

std::optional<bool> parse_kill_user_processes(std::string_view text) {
  const auto is_yes = [](const std::string& value) {
    return value == "yes" || value == "true" || value == "1" || value == "on";
  };
  std::optional<bool> set;
  std::optional<bool> by_default;
  for (std::string line : lines_of(text)) {
    line.erase(
        std::remove_if(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\t' || c == '\r'; }),
        line.end());
    const bool comment = starts_with(line, "#");
    if (comment) line.erase(0, 1);
    constexpr std::string_view kName = "KillUserProcesses=";
    if (starts_with(line, kName)) (comment ? by_default : set) = is_yes(line.substr(kName.size()));
  }
  return set ? set : by_default;
}

LogoutReading read_logout(const fs::path& root, const std::string& user) {
  LogoutReading logout;
  std::error_code ignored;
  logout.has_logind = fs::exists(root / "run/systemd/system", ignored);
  logout.lingers = fs::exists(root / "var/lib/systemd/linger" / user, ignored);
  std::optional<bool> kills;
  // The later one wins: what the distribution sets, then the administrator's file, then additions to it.
  std::vector<fs::path> files{root / "usr/lib/systemd/logind.conf", root / "etc/systemd/logind.conf"};
  for (const char* folder :
       {"usr/lib/systemd/logind.conf.d", "run/systemd/logind.conf.d", "etc/systemd/logind.conf.d"})
    for (const auto& name : names_in(root / folder)) files.push_back(root / folder / name);
  for (const auto& file : files)
    if (const auto said = parse_kill_user_processes(read_text(file))) kills = said;
  logout.kills = logout.has_logind && kills.value_or(false) && user != "root";  // KillExcludeUsers=root
  return logout;
}

}  // namespace footplate
