#include "console/doctor/machine.h"

#include <pwd.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "console/client/render/render.h"
#include "console/client/runs/run_record.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr std::int64_t kGibibyte = 1 << 30;
constexpr std::int64_t kLeastMemory = 2 * kGibibyte;  ///< two ranks of configs/kjv.lua and their console
constexpr std::int64_t kLeastSharedMemory = 256 * kMebibyte;  ///< Docker gives 64 MiB unless told otherwise
constexpr std::int64_t kLeastDisk = kGibibyte;
constexpr std::int64_t kLeastTemporary = 64 * kMebibyte;
constexpr std::int64_t kLeastLocked = kGibibyte;
constexpr std::int64_t kLeastFiles = 1024;

std::string count(std::size_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

std::string bytes_text(std::int64_t bytes) {
  return footplate::bytes_text(static_cast<double>(bytes));
}

Json or_null(const std::optional<std::int64_t>& value) {
  return value ? Json(*value) : Json();
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

std::optional<std::int64_t> usable_memory(const MemoryReading& memory, const GroupLimits& limits) {
  if (!memory.available) return limits.memory_left;
  return std::min(*memory.available, limits.memory_left.value_or(*memory.available));
}

Check check_memory(const MemoryReading& memory, const GroupLimits& limits) {
  Check check{.name = "memory"};
  const auto usable = usable_memory(memory, limits);
  check.values = {{"total_bytes", or_null(memory.total)},
                  {"available_bytes", or_null(memory.available)},
                  {"limit_bytes", or_null(limits.memory)},
                  {"usable_bytes", or_null(usable)}};
  if (!usable) {
    check.found = "unknown: /proc/meminfo doesn't tell";
    return to_mend(check, "mount -t proc proc /proc");
  }
  check.found = bytes_text(*usable) + " can be used";
  if (memory.total) check.found += ", the machine has " + bytes_text(*memory.total);
  if (limits.memory) check.found += ", the control group allows " + bytes_text(*limits.memory);
  if (*usable >= kLeastMemory) return check;
  if (limits.memory && *limits.memory < memory.total.value_or(*limits.memory + 1))
    return to_mend(check, "give the container or job more: docker run --memory=8g, sbatch --mem=8G");
  return to_mend(check,
                 "end other programs (ps aux --sort=-rss | head), or use fewer ranks or a smaller model");
}

Check check_cores(const CoresReading& cores, const GroupLimits& limits) {
  Check check{.name = "cores"};
  check.values = {{"online", cores.online},
                  {"allowed", cores.allowed},
                  {"quota", limits.cores ? Json(*limits.cores) : Json()}};
  check.found = count(static_cast<std::size_t>(cores.allowed), "core");
  if (cores.allowed < cores.online) check.found += " of " + std::to_string(cores.online) + " (bound)";
  if (limits.cores) check.found += ", time of " + rounded(*limits.cores, 3) + " (control group)";
  if (limits.cores && *limits.cores < cores.allowed)
    check.found += "; run.threads = 0 takes no more threads than that";
  if (cores.allowed > 1) check.found += "; ranks share them, none is bound to one";
  if (cores.allowed == 1 && cores.online > 1)
    return to_mend(check, "this process is bound to one core, and so would all ranks be: taskset -c 0-" +
                              std::to_string(cores.online - 1) +
                              " footplate run …; in a Slurm job: --cpus-per-task");
  return check;
}

Check check_devices(const DeviceReading& devices) {
  Check check{.name = "devices"};
  check.values = {{"models", devices.models}, {"driver", devices.module}, {"library", devices.library}};
  if (devices.models.empty() && devices.module.empty()) {
    check.found = "none: training runs on the processors";
    return check;
  }
  check.found = joined(devices.models);
  if (devices.models.empty()) check.found = "none";
  check.found += ", driver " + (devices.module.empty() ? "not loaded" : devices.module) + ", libcuda " +
                 (devices.library.empty() ? "missing" : devices.library);
  if (devices.models.empty())
    return to_mend(
        check,
        "a driver is loaded and shows no device: nvidia-smi and dmesg | grep -i nvrm tell why; in a "
        "container: docker run --gpus all");
  if (devices.library.empty())
    return to_mend(check, "install the driver's library of the same version, or docker run --gpus all");
  const bool has_version = devices.library.front() != '/';
  if (has_version && devices.library != devices.module && !devices.module.empty())
    return to_mend(
        check, "the two halves of the driver differ, which an update does until the next start: sudo reboot");
  return check;
}

Check check_network(const NetworkReading& network) {
  Check check{.name = "network"};
  check.values = {{"interface", Json()}, {"infiniband", network.infiniband}};
  const std::string adapters =
      network.infiniband.empty() ? "" : "; InfiniBand: " + joined(network.infiniband);
  if (!network.interface) {
    check.found = "no route to other hosts: ranks run on this machine only" + adapters;
    return check;
  }
  const Interface& used = *network.interface;
  check.values["interface"] = {
      {"name", used.name}, {"state", used.state}, {"mtu", used.mtu}, {"mbit_per_s", used.mbit_per_s}};
  check.found = used.name + " leads to other hosts (routing table), MTU " + std::to_string(used.mtu);
  if (used.mbit_per_s > 0)
    check.found += ", " + rounded(static_cast<double>(used.mbit_per_s) / 1000, 3) + " Gbit/s";
  check.found += adapters;
  if (used.state == "down" || used.state == "lowerlayerdown" || used.state == "dormant")
    return to_mend(check, used.name + " is " + used.state + ": sudo ip link set " + used.name +
                              " up; look at its cable");
  return check;
}

Check check_shared_memory(const Room& shared_memory) {
  Check check{.name = "shared memory"};
  check.values = {{"folder", shared_memory.folder.string()},
                  {"size_bytes", or_null(shared_memory.size)},
                  {"free_bytes", shared_memory.free}};
  const std::string folder = shared_memory.folder.string();
  if (!shared_memory.size) {
    check.found = folder + " can't be written: ranks exchange through files in /tmp, which is slower";
    return to_mend(check, "sudo mount -t tmpfs -o mode=1777 tmpfs " + folder);
  }
  check.found =
      bytes_text(shared_memory.free) + " free of " + bytes_text(*shared_memory.size) + " in " + folder;
  if (shared_memory.free >= kLeastSharedMemory) return check;
  return to_mend(check, "sudo mount -o remount,size=1G " + folder +
                            "; a container: docker run --shm-size=1g; what is left "
                            "there of dead programs: ls -l " +
                            folder);
}

Check check_limits(const ProcessLimits& limits, bool registers) {
  Check check{.name = "limits"};
  check.values = {{"locked_memory_bytes", or_null(limits.locked_memory)},
                  {"open_files", or_null(limits.open_files)}};
  check.found = "locked memory " +
                (limits.locked_memory ? bytes_text(*limits.locked_memory) : "without a limit") +
                (registers ? "" : " (only adapters and devices need it)") + ", open files " +
                (limits.open_files ? std::to_string(*limits.open_files) : "without a limit");
  if (limits.open_files.value_or(kLeastFiles) < kLeastFiles)
    return to_mend(check, "ulimit -n " + std::to_string(kLeastFiles) +
                              "; for good: \"* - nofile 65536\" in /etc/security/limits.conf");
  if (registers && limits.locked_memory.value_or(kLeastLocked) < kLeastLocked)
    return to_mend(check,
                   "ulimit -l unlimited; for good: \"* - memlock unlimited\" in /etc/security/limits.conf, "
                   "LimitMEMLOCK=infinity for a service, docker run --ulimit memlock=-1");
  return check;
}

Check check_logout(const LogoutReading& logout, const std::string& user) {
  Check check{.name = "logout"};
  check.values = {{"logind", logout.has_logind}, {"kills", logout.kills}, {"lingers", logout.lingers}};
  if (!logout.has_logind) {
    check.found = "ends no process: systemd-logind doesn't run here";
  } else if (!logout.kills) {
    check.found = "ends no process of " + user + " (KillUserProcesses)";
  } else if (logout.lingers) {
    check.found = "ends no process: " + user + " lingers (loginctl)";
  } else {
    check.found = "the last logout ends all processes of " + user + ", runs too (KillUserProcesses=yes)";
    return to_mend(check, "sudo loginctl enable-linger " + user);
  }
  return check;
}

Check check_disk(const Room& runs, const Room& temporary) {
  Check check{.name = "disk"};
  check.values = {{"runs", runs.folder.string()},
                  {"runs_free_bytes", runs.size ? Json(runs.free) : Json()},
                  {"temporary_free_bytes", temporary.size ? Json(temporary.free) : Json()}};
  if (!runs.size) {
    check.found = "runs can't be written to " + runs.folder.string();
    return to_mend(check, "export FOOTPLATE_RUNS=FOLDER, one that you may write");
  }
  check.found = bytes_text(runs.free) + " free for runs in " + runs.folder.string();
  if (!temporary.size || temporary.free < kLeastTemporary) {
    check.found += temporary.size ? ", " + bytes_text(temporary.free) + " in " + temporary.folder.string()
                                  : ", " + temporary.folder.string() + " can't be written";
    return to_mend(check, "sockets and MPI's files go to " + temporary.folder.string() + ": df -h " +
                              temporary.folder.string() + ", and chmod 1777 if it is closed");
  }
  if (runs.free >= kLeastDisk) return check;
  return to_mend(check,
                 "checkpoints need room: export FOOTPLATE_RUNS=FOLDER on another disk, or lower ckpt.keep");
}

Check check_versions(const Libraries& libraries) {
  Check check{.name = "versions"};
  const std::string& torch = libraries.found.libtorch;
  const std::string& mpi = libraries.found.mpi;
  const std::string& rank = libraries.found.footplate;
  check.values = libraries.found.all;
  check.values["lua"] = libraries.lua;
  check.found =
      "footplate " + libraries.own_version + ", LibTorch " + torch + ", " + mpi + ", " + libraries.lua;
  if (!libraries.missing.empty())
    return to_mend(
        check, "beside this program there is no " + joined(libraries.missing) + ": build it (scripts/run)");
  if (rank != libraries.own_version)
    return to_mend(
        check, "footplate-rank beside this program is version " + rank + ": build all of it (scripts/run)");
  if (torch.rfind(libraries.pinned_torch, 0) != 0 || mpi.find(libraries.pinned_mpi) == std::string::npos)
    check.found +=
        " (tested with LibTorch " + libraries.pinned_torch + " and Open MPI " + libraries.pinned_mpi + ")";
  return check;
}

Check check_environment(const Libraries& libraries, const fs::path& root) {
  Check check{.name = "environment"};
  const std::string& file = libraries.found.libtorch_file;
  // Below …/env-cpu/lib/python3.11/site-packages, where scripts/deps puts it.
  const auto inside = file.find("/lib/python");
  if (inside == std::string::npos) {
    check.found = "LibTorch of your own: " + file;
    return check;
  }
  const fs::path folder = file.substr(0, inside);
  if (folder.filename().string().rfind("env-", 0) != 0) {  // a bundle's LibTorch, or a wheel's
    check.found = "LibTorch of a Python: " + folder.string();
    return check;
  }
  check.values = {{"folder", folder.string()}};
  check.found = folder.string() + ", as scripts/deps makes it";
  std::error_code ignored;
  if (fs::exists(root / folder.relative_path() / "stamp", ignored)) return check;
  check.found = folder.string() + " isn't complete";
  return to_mend(check, "scripts/deps (in the sources), which makes it again");
}

CoresReading read_cores() {
  CoresReading cores;
  cores.online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  cores.allowed = cores.online;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) cores.allowed = CPU_COUNT(&set);
  return cores;
}

ProcessLimits read_limits() {
  const auto limit = [](int which) -> std::optional<std::int64_t> {
    rlimit value{};
    if (::getrlimit(static_cast<__rlimit_resource>(which), &value) != 0 || value.rlim_cur == RLIM_INFINITY)
      return std::nullopt;
    return static_cast<std::int64_t>(value.rlim_cur);
  };
  return {limit(RLIMIT_MEMLOCK), limit(RLIMIT_NOFILE)};
}

Room read_room(const fs::path& folder) {
  std::error_code ignored;
  fs::path there = fs::absolute(folder, ignored).lexically_normal();
  Room room{.folder = there, .size = std::nullopt};
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  struct statvfs info {};
  if (::access(there.c_str(), W_OK | X_OK) != 0 || ::statvfs(there.c_str(), &info) != 0) return room;
  room.size = static_cast<std::int64_t>(info.f_blocks * info.f_frsize);
  room.free = static_cast<std::int64_t>(info.f_bavail * info.f_frsize);
  return room;
}

std::string read_user() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_name : std::to_string(::getuid());
}

}  // namespace footplate
