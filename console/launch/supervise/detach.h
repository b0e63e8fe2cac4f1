#pragma once

#include <sys/types.h>

#include <filesystem>

#include "console/launch/start/plan.h"
#include "console/launch/start/signals.h"
#include "protocol/result.h"

namespace footplate {

/// Forks. In the child, which becomes the supervisor: 0; it is in a session of its own, with stdin and stdout
/// on /dev/null and stderr appended to the launcher's log. In the parent: the child's pid.
Result<pid_t> detach(const std::filesystem::path& log);

/// In the parent: waits for the run's first step, or for its end. Returns 0 once it steps, else the run's
/// exit code after saying why it ended on stderr. A signal ends the waiting, not the run.
int wait_for_first_step(const RunPlan& plan, pid_t supervisor, Signals& signals);

/// Says on stderr how a run ended that its supervisor has left, where that needs words; returns its exit
/// code.
int explain_end(const std::string& name, const std::filesystem::path& directory);

}  // namespace footplate
