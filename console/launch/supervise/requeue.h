#pragma once

#include <filesystem>
#include <string>

#include "console/launch/start/slurm_job.h"
#include "protocol/messages/run_result.h"
#include "protocol/result.h"

namespace footplate {

/// What decides whether a run is put back, besides its result.
struct RequeueFacts {
  int signal = 0;         ///< that was asked with first, or 0
  bool near_end = false;  ///< it came in the last minute of the job's time, where Slurm sends SIGTERM itself
  bool saved = false;     ///< a checkpoint has come since the command began
  bool in_vain = false;   ///< the job was put back before without one, and none has come since
};

/// Why `result` of a run is not put back into Slurm's queue; empty: it is. What fails, or reaches its limit,
/// before it has saved anything would come back for ever; and who cancels a job doesn't want it back.
std::string why_not_requeued(const RunResult& result, const RequeueFacts& facts);

/// Whether `job` was put back before without a new checkpoint, and none has come to `directory` since.
bool was_requeued_in_vain(const std::filesystem::path& directory, const SlurmJob& job);
/// Keeps that for the next time.
void keep_requeue(const std::filesystem::path& directory, const SlurmJob& job, bool saved);

/// `scontrol requeue ID`. Slurm ends this process soon after. Errors (failed): there is no scontrol, or what
/// it says.
Result<void> requeue(const SlurmJob& job);

}  // namespace footplate
