#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "console/launch/start/host_list.h"
#include "console/launch/start/plan.h"
#include "protocol/port_range.h"
#include "protocol/result.h"
#include "run_files/private_folders.h"

namespace footplate {

/// Of comm.ports, that one mpirun takes: so that as many runs have a daemon on one host.
inline constexpr std::size_t kPortsOfMpirun = 3;

/// A program to start: arguments, the program first, and the whole environment as NAME=VALUE.
struct Command {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  bool by_mpirun = false;  ///< it starts the ranks
};

/// Hosts on which processes are started, as mpirun takes them.
struct Placement {
  std::vector<Host> hosts;                       ///< none: all are on this machine
  std::string network = kAutoNetwork;            ///< over which they speak: comm.network's value
  std::optional<PortRange> ports = {};           ///< at which they listen; nothing: at any
  std::size_t ports_of_mpirun = kPortsOfMpirun;  ///< how many of them it is given
  std::size_t ports_taken = 0;                   ///< by others that are started at the same time
  bool has_private_folders = true;  ///< on every host: ranks make them, processes of doctor don't
  bool outlives_hosts = false;      ///< ranks find out themselves that a host is lost (comm.host_timeout_s)
};

/// How `ranks` processes footplate-rank of `program_folder` are started with these arguments: under mpirun,
/// or one alone without it. Errors (usage): no mpirun, no footplate-rank, with where they were looked for;
/// network_list()'s.
Result<Command> launch_command(const std::filesystem::path& program_folder, int ranks,
                               const std::vector<std::string>& arguments, const PrivateFolders& folders,
                               const Placement& placement = {});

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

/// Where Open MPI is, of a command that mpirun starts: "/opt/mpi" of "/opt/mpi/bin/mpirun".
std::string mpi_prefix(const Command& command);

/// NAME=VALUE in the environment of every process of a run, and of no other's.
std::string run_mark(const PrivateFolders& folders);

}  // namespace footplate
