#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "console/launch/start/host_pool.h"
#include "console/launch/start/slurm_job.h"
#include "protocol/port_range.h"
#include "protocol/schema.h"

namespace footplate {

/// What `footplate run` has decided before anything is started.
struct RunPlan {
  std::string name;
  std::string id;                        ///< 8 hexadecimal digits, new for each `footplate run`
  std::filesystem::path directory;       ///< runs/NAME, absolute
  std::filesystem::path program_folder;  ///< where footplate-rank is
  int ranks = 1;
  std::vector<Host> hosts;  ///< with a slot for each rank, this machine first; empty: all are on this machine
  std::vector<int>
      host_groups;  ///< of another run, by rank: its reductions are repeated; empty: as the ranks are
  HostPool pool;    ///< that the hosts of each start are taken from; empty where `hosts` is
  std::string network = kAutoNetwork;  ///< comm.network: over which the hosts speak
  std::optional<PortRange> ports;      ///< comm.ports: at which they listen; nothing: at any
  bool outlives_hosts = false;         ///< comm.host_timeout_s
  int start = 1;                       ///< number of the first start: config-START.json
  std::optional<std::string> resume;   ///< "auto" or a checkpoint's path
  int restarts = 0;                    ///< after failures
  bool restarts_asked = false;         ///< whatever they are: else only what may go well this time
  std::optional<SlurmJob> job;         ///< that this process is in
  std::optional<SlurmJob> requeue;     ///< that is put back into the queue, where the run ends resumable
  std::string notify;                  ///< a command of the shell (Notifier); empty: none
  /// Of the command: run.time_limit counts from here, whatever is started again.
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  Schema schema;  ///< that the programs were built with
};

/// 8 random hexadecimal digits: names a run's socket and private folders.
Result<std::string> new_run_id();

}  // namespace footplate
