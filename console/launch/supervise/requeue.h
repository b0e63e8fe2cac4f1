#pragma once

#include <string>

#include "console/launch/start/slurm_job.h"
#include "protocol/messages/run_result.h"
#include "protocol/result.h"

namespace footplate {

/// Why `result` of a run is not put back into Slurm's queue; empty: it is. `signal`: that was asked with
/// first, or 0; `saved`: a checkpoint has come since the command began. What fails, or reaches its limit,
/// before it has saved anything would come back for ever; and who cancels a job doesn't want it back.
std::string why_not_requeued(const RunResult& result, int signal, bool saved);

/// `scontrol requeue ID`. Slurm ends this process soon after. Errors (failed): there is no scontrol, or what
/// it says.
Result<void> requeue(const SlurmJob& job);

}  // namespace footplate
