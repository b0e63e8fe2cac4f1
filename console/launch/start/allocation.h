#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "console/launch/start/host_list.h"
#include "protocol/nccl/variables.h"
#include "protocol/result.h"

namespace footplate {

/// The hosts that a batch system has given this job, with its tasks or devices on each as slots, as
/// `environment` tells it: Slurm, PBS and LSF. This machine comes first. Empty: the job has one host.
/// Nothing: there is no job, or this machine isn't among its hosts (a shell of salloc on a login node).
/// Errors (failed): what the batch system says can't be read.
Result<std::optional<std::vector<Host>>> allocated_hosts(const Environment& environment);

/// "2(x3),1" of SLURM_TASKS_PER_NODE: 2, 2, 2, 1. Empty: it is none.
std::vector<int> tasks_per_node(std::string_view text);

/// "n1 4 n2 4" of LSB_MCPU_HOSTS.
std::vector<Host> hosts_of_lsf(const std::string& text);

}  // namespace footplate
