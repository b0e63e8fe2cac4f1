#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "protocol/nccl/variables.h"
#include "protocol/settings.h"

namespace footplate {

/// The Slurm job that a process is in, by its environment.
struct SlurmJob {
  std::string id;                     ///< SLURM_JOB_ID
  std::optional<std::int64_t> end_s;  ///< SLURM_JOB_END_TIME, seconds since the epoch; older Slurm lacks it
};

/// None: `environment` is not a job's.
std::optional<SlurmJob> slurm_job(const Environment& environment);

/// run.time_limit where nobody has set it: what the job's end leaves at `now_s` (seconds since the epoch),
/// less time to save: two minutes, or a quarter of it where that is less. At least a second. What it was set
/// to by an earlier job doesn't count. True: it was set.
bool limit_to_job(Settings& settings, const SlurmJob& job, double now_s);

}  // namespace footplate
