#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace footplate {

/// A line of the system's process table.
struct ProcessEntry {
  pid_t pid = 0;
  std::string name;  ///< at most 15 characters
  char state = '?';  ///< 'Z' for one that has ended and that nobody has waited for
  pid_t session = 0;
  bool exiting = false;       ///< it runs no code of its own any more, but may still hold files and locks
  std::uint64_t started = 0;  ///< clock ticks since boot: with the pid it names a process for good
};

/// The process, or one with pid 0 where there is none.
ProcessEntry process_entry(pid_t pid);

/// All processes of a run's session that haven't ended: mpirun and the ranks, not the console (kConsoleMark).
std::vector<ProcessEntry> launched_processes(pid_t session);

/// Every process of a run has this variable, with the run's private folder as its value; no other has.
inline constexpr const char* kRunVariable = "FOOTPLATE_DOORBELL_DIR";

/// All processes of this user whose environment has the line NAME=VALUE and that haven't ended.
std::vector<ProcessEntry> processes_with_variable(const std::string& line);

/// Whether `pid` runs and is one of footplate's programs: a pid from a file may since belong to another
/// program. By its name or its file: a task may have renamed a rank's thread. `started`, where it isn't 0,
/// has to be right as well.
bool is_footplate_process(pid_t pid, std::uint64_t started = 0);

/// The same, of the run with this private folder. Another user's process is taken for it: its environment
/// can't be read.
bool is_process_of_run(pid_t pid, const std::string& private_folder);

}  // namespace footplate
