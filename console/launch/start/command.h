#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "console/launch/start/plan.h"
#include "console/launch/start/private_folders.h"
#include "protocol/result.h"

namespace footplate {

/// A program to start: arguments, the program first, and the whole environment as NAME=VALUE.
struct Command {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
};

/// How `ranks` processes footplate-rank of `program_folder` are started with these arguments: under mpirun,
/// or one alone without it. `places`: hosts with their slots ("n2:1"), as of Open MPI's --host; none: where
/// mpirun starts them by itself. There a process has no private folders. Errors (usage): no mpirun, no
/// footplate-rank, with where they were looked for.
Result<Command> launch_command(const std::filesystem::path& program_folder, int ranks,
                               const std::vector<std::string>& arguments, const PrivateFolders& folders,
                               const std::vector<std::string>& places = {});

/// One start of a run.
struct StartOptions {
  int number = 1;
  std::string resume;     ///< empty: fresh; "auto", or a path
  std::string branch;     ///< of checkpoints, that it opens; empty: it goes on in the one of `resume`
  std::int64_t left = 0;  ///< with `branch`: the step that ckpt.load went back from
  std::chrono::milliseconds ran{0};  ///< since `footplate run` began: run.time_limit counts from there
};

/// How the ranks of `plan` are started. Errors: launch_command's.
Result<Command> rank_command(const RunPlan& plan, const StartOptions& start, const PrivateFolders& folders);

/// NAME=VALUE in the environment of every process of a run, and of no other's.
std::string run_mark(const PrivateFolders& folders);

}  // namespace footplate
