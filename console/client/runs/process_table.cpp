#include "console/client/runs/process_table.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string_view>

#include "protocol/console_mark.h"
#include "run_files/text_file.h"

namespace footplate {

constexpr unsigned kExiting = 0x4;  ///< PF_EXITING among the kernel's flags of a process (linux/sched.h)

ProcessEntry process_entry(pid_t pid) {
  ProcessEntry entry;
  // A process may end between the opening of its file and the reading.
  const std::string line = text_of_file("/proc/" + std::to_string(pid) + "/stat").value_or("");
  if (pid <= 0 || line.empty()) return entry;
  // "PID (NAME) STATE PPID PGRP SESSION …"; the name may hold spaces, parentheses and line ends.
  const auto open = line.find('(');
  const auto close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return entry;
  pid_t parent = 0;
  pid_t group = 0;
  std::istringstream rest(line.substr(close + 1));
  if (!(rest >> entry.state >> parent >> group >> entry.session)) return {};
  int terminal = 0;
  int foreground = 0;
  unsigned flags = 0;
  rest >> terminal >> foreground >> flags;
  entry.exiting = (flags & kExiting) != 0;
  constexpr int kFieldsBetween = 12;  // after the flags, up to starttime (proc(5))
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) rest >> skipped;
  rest >> entry.started;
  entry.name = line.substr(open + 1, close - open - 1);
  entry.pid = pid;
  return entry;
}

namespace {

std::vector<ProcessEntry> processes_that(const std::function<bool(const ProcessEntry&)>& wanted) {
  std::vector<ProcessEntry> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size())
      continue;
    ProcessEntry process = process_entry(pid);
    if (process.pid != 0 && process.state != 'Z' && wanted(process)) found.push_back(std::move(process));
  }
  return found;
}

bool is_footplates(std::string_view program) {
  return program.starts_with("footplate");
}

/// The file that it runs, without its folder; empty where it is another user's.
std::string program_of(pid_t pid) {
  std::error_code unreadable;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", unreadable).filename();
}

/// Whether its environment, as it was started with, has this line; `unreadable` where it is another user's.
bool has_variable(pid_t pid, std::string_view line, bool unreadable = false) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  if (!file) return unreadable;
  for (std::string entry; std::getline(file, entry, '\0');)
    if (entry == line) return true;
  return false;
}

}  // namespace

std::vector<ProcessEntry> launched_processes(pid_t session) {
  return processes_that([=](const ProcessEntry& process) {
    return process.session == session && !has_variable(process.pid, kConsoleMark);
  });
}

std::vector<ProcessEntry> processes_with_variable(const std::string& line) {
  return processes_that([&](const ProcessEntry& process) { return has_variable(process.pid, line); });
}

bool is_footplate_process(pid_t pid, std::uint64_t started) {
  const ProcessEntry entry = process_entry(pid);
  if (started != 0 && entry.started != started) return false;
  if (entry.pid == 0 || entry.state == 'Z' || entry.exiting) return false;
  return is_footplates(entry.name) || is_footplates(program_of(pid));
}

bool is_process_of_run(pid_t pid, const std::string& private_folder) {
  const std::string line = std::string(kRunVariable) + "=" + private_folder;
  return is_footplate_process(pid) && has_variable(pid, line, /*unreadable=*/true);
}

}  // namespace footplate
