#pragma once

#include <memory>

#include "protocol/schema.h"
#include "runtime/tasks/hosted_task.h"

namespace footplate {

/// The schema of a run whose run.task is `task`: footplate's own, and what a task with settings of its own
/// declares. Errors (usage): there is no such task, what load_plugin() and with_declared() say.
Result<Schema> schema_of_task(const std::string& task);

/// The task that run.task names, on a device that outlives it. Errors (usage): there is none of that name,
/// what HostedTask::make says.
Result<std::unique_ptr<HostedTask>> make_task(const Settings& settings, TaskPlace place,
                                              const ComputeDevice& device, const HostedTask::Wrap& wrap = {});

}  // namespace footplate
