#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>

#include "console/launch/start/command.h"
#include "protocol/subprocess.h"

namespace footplate {

/// Starts mpirun, or the only rank, in a session of its own: what a terminal sends to its foreground group
/// doesn't reach it, and whatever it starts can be found by the session, whose number is the child's.
///
/// `command` gets /dev/null as stdin and SIGTERM blocked; stdout and stderr are appended to the files. Should
/// this process be killed, the child gets SIGUSR2: save and stop. posix_spawn has nothing for that signal, so
/// this forks. Call on the main thread: the signal is bound to the thread.
Result<Subprocess> start_child(const Command& command, const std::filesystem::path& out,
                               const std::filesystem::path& err);

/// Kills what is left of mpirun and the ranks, and returns once all are gone, or after 5 s.
void end_launched(pid_t session);

/// The same for whatever else belongs to the run (rank 0's console and its children), told by the variable
/// that all processes of a run inherit. They end by themselves when rank 0 is gone, and get `patience` for
/// that.
void end_stragglers(const PrivateFolders& folders, std::chrono::milliseconds patience);

}  // namespace footplate
