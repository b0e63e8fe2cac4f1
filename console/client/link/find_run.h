#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "console/client/link/run_connection.h"
#include "console/client/runs/run_record.h"

namespace footplate {

/// What a command can do with.
enum class Wanted {
  live,  ///< only a run that one can speak to
  any,   ///< an ended or lost one too: left out, the newest one where none is live
};

/// The run a user means by `name`: a name, a path, or nothing where only one run is live. Errors
/// (unreachable): no such run, with the nearest name and the list; (usage): several, with their paths.
Result<RunRecord> find_run(const std::string& name, Wanted wanted);

/// How long the console of a run that is starting is waited for.
inline constexpr std::chrono::seconds kConsoleStarts{10};
/// And one that is being replaced.
inline constexpr std::chrono::seconds kConsoleReturns{3};

/// A connection to that run's console. A run that is starting, or whose console is being replaced, gets a
/// moment, `at_most`. Errors: as find_run; unreachable; timed_out.
Result<Connection> connect_to(const std::string& name, Deadline deadline,
                              std::chrono::seconds at_most = kConsoleStarts);

/// Why one can't speak to `record`: what happened to it and the next command. Unreachable.
Error not_live(const RunRecord& record);

/// What this process was started with, without the program.
std::vector<std::string> typed_words();

/// That command for the shell of another host: with the whole path of the program, which may not be in PATH
/// there, the folder of the run, which need not be known there, and in the folder of this process where a
/// word names something in it.
std::string remote_command(const RunRecord& run, const std::vector<std::string>& words);

/// The same with the words that were typed, to be typed behind `ssh HOST`.
std::string typed_command(const RunRecord& run);

}  // namespace footplate
