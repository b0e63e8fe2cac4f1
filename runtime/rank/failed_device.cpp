#include "runtime/rank/failed_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

#include "protocol/host_name.h"
#include "runtime/comm/mpi/mpi_session.h"

namespace footplate {

std::function<std::string(const std::vector<int>& origins)> why_ranks_were_lost(
    const RankOptions& options, const std::unique_ptr<SeveralHosts>& hosts) {
  return [&options, &hosts](const auto& origins) {
    const std::string of_device = why_lost(options.run_directory, options.start, origins);
    return of_device.empty() && hosts != nullptr ? hosts->why_lost(origins) : of_device;
  };
}

bool has_lost_device(const Trainer& trainer, int rank, const RankOptions& options, RankRecords& records) {
  const auto failure = trainer.failed_together() ? std::nullopt : trainer.device_failure();
  if (!failure) return false;
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const int origin = options.joins < 0 ? MpiSession::launched_rank() : options.joins;
  const FailedDevice device{failure->id, failure->description, host_name(), failure->why, rank,
                            origin,      options.start,        now.count()};
  const auto kept = add_failed_device(options.run_directory, device);
  const std::string text =
      fmt::format("rank {} ends: its device {}, has failed: {}", rank, name_of(device), device.why);
  records.warn(text + (kept ? "; this job doesn't take it again" : "; " + kept.error().message));
  records.flush();
  std::fprintf(stderr, "footplate: %s\n", text.c_str());
  std::fflush(nullptr);
  return true;
}

/// Any other end is an error to mpirun, which would end all ranks.
void leave_alone() {
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

}  // namespace footplate
