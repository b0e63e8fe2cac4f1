#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/nccl/variables.h"
#include "protocol/settings.h"

namespace footplate {

/// The number that a variable has; nothing: it isn't set, or isn't one.
std::optional<std::int64_t> number_in(const Environment& environment, const char* name);

/// The Slurm job that a process is in, by its environment.
struct SlurmJob {
  std::string id;                     ///< SLURM_JOB_ID
  std::optional<std::int64_t> end_s;  ///< SLURM_JOB_END_TIME, seconds since the epoch; older Slurm lacks it
  int restarts = 0;                   ///< SLURM_RESTART_COUNT: how often Slurm has put it back
};

/// None: `environment` is not a job's.
std::optional<SlurmJob> slurm_job(const Environment& environment);

/// The seconds of what `squeue -o %L` says is left of a job: "59:58", "23:59:58", "1-23:59:58". Nothing: it
/// has no end, or isn't running.
std::optional<std::int64_t> seconds_left(std::string_view text);

/// Where the environment didn't say when `job` ends: asks squeue. `now_s`: seconds since the epoch. Returns
/// why it isn't known; empty: it is, or there is no end.
std::string ask_for_end(SlurmJob& job, std::int64_t now_s);

/// run.time_limit is its default again where an earlier job's end has set it.
void forget_earlier_job(Settings& settings);

/// run.time_limit where nobody has set it: what the job's end leaves at `now_s` (seconds since the epoch),
/// less time to save: two minutes, or a quarter of it where that is less. At least a second. True: it was
/// set.
bool limit_to_job(Settings& settings, const SlurmJob& job, double now_s);

/// Whether `environment` is that of a step that srun has started. The batch script isn't one, and neither is
/// the shell of salloc.
bool is_in_step(const Environment& environment);

}  // namespace footplate
