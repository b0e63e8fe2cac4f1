#include "console/doctor/readings.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace footplate {
namespace {

namespace fs = std::filesystem;

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
