#pragma once

#include "protocol/nccl/variables.h"
#include "protocol/value.h"

namespace footplate {

/// `footplate run` starts all ranks itself: under `srun -n 4` or `mpirun -n 4` four would each start a run.
/// Error (usage) where `environment` is that of one of several processes that a launcher has started at
/// once; it says what to write instead. A batch script is none of those, however many tasks its job has, and
/// neither is what a run has started itself (a job's script).
Result<void> check_launched_once(const Environment& environment);

/// Where a run has started this process (a job's script): it isn't ended with that run, and its ranks take
/// nothing from that run's MPI. For the main thread, before there is another one.
void leave_outer_run();

}  // namespace footplate
