#include "runtime/rank/failed_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

#include "protocol/exit_codes.h"
#include "runtime/comm/mpi/mpi_session.h"

namespace footplate {

std::function<std::string(const std::vector<int>& origins)> what_lost_ranks_said(const RankOptions& options) {
  return [&options](const auto& origins) { return why_lost(options.run_directory, options.start, origins); };
}

void leave_with_failed_device(const DeviceFailure& failure, const RankOfDevice& of,
                              const RankOptions& options, RankRecords& records, RunResult result) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const int origin = options.joins < 0 ? MpiSession::launched_rank() : options.joins;
  const FailedDevice device{failure.id, failure.description, of.host,    failure.why, of.rank,
                            origin,     options.start,       now.count()};
  const auto kept = add_failed_device(options.run_directory, device);
  const std::string text =
      fmt::format("rank {} ends: its device {} has failed: {}", of.rank, name_of(device), failure.why);
  records.warn(text + (kept ? "; this job doesn't take it again" : "; " + kept.error().message));
  records.flush();
  std::fprintf(stderr, "footplate: %s\n", text.c_str());
  std::fflush(nullptr);
  if (of.ranks == 1) {
    result.code = static_cast<int>(ExitCode::resumable);
    result.reason = text;
    write_result_if_missing(options.run_directory, result);
    MpiSession::abort(result.code);
  }
  // Any other end is an error to mpirun, which would end all ranks.
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

}  // namespace footplate
