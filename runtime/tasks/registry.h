#pragma once

#include <memory>

#include "runtime/tasks/hosted_task.h"

namespace footplate {

/// The task that run.task names, on a device that outlives it. Errors (usage): there is none of that name,
/// what HostedTask::make says.
Result<std::unique_ptr<HostedTask>> make_task(const Settings& settings, int world_size,
                                              const ComputeDevice& device, const HostedTask::Wrap& wrap = {},
                                              HostedTask::Log log = {});

}  // namespace footplate
