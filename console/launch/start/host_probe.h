#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "console/launch/start/host_list.h"
#include "console/launch/start/plan.h"
#include "protocol/subprocess.h"
#include "run_files/private_folders.h"

namespace footplate {

/// Which hosts answer: starts a process on each at once, as a run's ranks are started, over mpirun and ssh.
/// One thread, the main one (start_child). The destructor ends what is under way.
class HostProbe {
 public:
  /// `hosts`: not this machine. What the processes say is kept in `folders` until the probe is gone.
  HostProbe(const RunPlan& plan, const std::vector<Host>& hosts, const PrivateFolders& folders);
  ~HostProbe();
  HostProbe(const HostProbe&) = delete;
  HostProbe& operator=(const HostProbe&) = delete;

  /// Whether all have answered, or had the time for it. Never waits.
  bool is_done();

  /// Once it is done: the hosts that start no process, by name, and why: what ssh or mpirun said.
  const std::map<std::string, std::string>& silent() const { return silent_; }

 private:
  struct Asked {
    std::string host;
    std::string mpi_prefix;  ///< where Open MPI is
    std::filesystem::path said;
    Subprocess process;
  };
  void conclude(Asked& asked);

  const std::chrono::steady_clock::time_point until_;
  std::vector<Asked> asked_;  ///< those that are under way
  std::map<std::string, std::string> silent_;
};

}  // namespace footplate
