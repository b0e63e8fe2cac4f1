#include <fmt/format.h>

#include <string_view>

#include "runtime/tasks/synthetic_task.h"
#include "runtime/tasks/task.h"
#include "runtime/tasks/text_task.h"

namespace footplate {
namespace {

struct Entry {
  std::string_view name;
  Result<std::unique_ptr<Task>> (*make)(const Settings& settings, int world_size,
                                        const ComputeDevice& device);
};

/// The values that run.task may have (runtime/schema/settings_run.cpp lists them too).
constexpr Entry kTasks[] = {
    {"text", TextTask::make},
    {"synthetic", SyntheticTask::make},
};

}  // namespace

Result<std::unique_ptr<Task>> make_task(const Settings& settings, int world_size,
                                        const ComputeDevice& device) {
  const std::string& name = settings.string("run.task");
  for (const Entry& entry : kTasks)
    if (entry.name == name) return entry.make(settings, world_size, device);
  return fail(ErrorKind::usage, fmt::format("run.task = \"{}\": there is no such task", name));
}

}  // namespace footplate
