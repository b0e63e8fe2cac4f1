#include "runtime/tasks/registry.h"

#include <fmt/format.h>

#include <string_view>

#include "runtime/tasks/synthetic_task.h"
#include "runtime/tasks/text_task.h"

namespace footplate {
namespace {

template <class T>
constexpr v1::Descriptor built_in(const char* name) {
  return {.name = name,
          .declare = [] { return T::declare(); },
          .make = [](const v1::Host& host) -> v1::Task* { return new T(host); }};
}

/// The values that run.task may have (runtime/schema/settings_run.cpp lists them too).
constexpr v1::Descriptor kTasks[] = {built_in<TextTask>("text"), built_in<SyntheticTask>("synthetic")};

}  // namespace

Result<std::unique_ptr<HostedTask>> make_task(const Settings& settings, int world_size,
                                              const ComputeDevice& device, const HostedTask::Wrap& wrap,
                                              HostedTask::Log log) {
  const std::string& name = settings.string("run.task");
  for (const v1::Descriptor& task : kTasks)
    if (task.name == name) return HostedTask::make(task, settings, world_size, device, wrap, std::move(log));
  return fail(ErrorKind::usage, fmt::format("run.task = \"{}\": there is no such task", name));
}

}  // namespace footplate
