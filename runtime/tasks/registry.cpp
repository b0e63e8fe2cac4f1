#include "runtime/tasks/registry.h"

#include <fmt/format.h>

#include <string_view>

#include "protocol/task_name.h"
#include "runtime/models/layer_operators.h"
#include "runtime/python/load_python.h"
#include "runtime/schema/schema_table.h"
#include "runtime/tasks/classify_task.h"
#include "runtime/tasks/declared_schema.h"
#include "runtime/tasks/plugin.h"
#include "runtime/tasks/rvq_task.h"
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
constexpr v1::Descriptor kTasks[] = {built_in<TextTask>("text"), built_in<SyntheticTask>("synthetic"),
                                     built_in<RvqTask>("rvq"), built_in<ClassifyTask>("classify")};

/// Null: none of footplate's own.
const v1::Descriptor* own_task(const std::string& name) {
  for (const v1::Descriptor& task : kTasks)
    if (task.name == name) return &task;
  return nullptr;
}

Result<const v1::Descriptor*> find_task(const std::string& name) {
  if (const v1::Descriptor* task = own_task(name)) return task;
  register_layers();
  if (is_plugin(name)) return load_plugin(name.substr(kPluginPrefix.size()));
  if (is_python(name)) return load_python(name.substr(kPythonPrefix.size()));
  return fail(ErrorKind::usage, fmt::format("run.task = \"{}\": there is no such task", name));
}

}  // namespace

Result<Schema> schema_of_task(const std::string& task) {
  Schema schema = runtime_schema();
  if (!declares_settings(task)) return schema;
  const auto found = find_task(task);
  if (!found) return tl::unexpected(found.error());
  try {
    return with_declared(std::move(schema), (*found)->declare(), task);
  } catch (const std::exception& error) {
    return fail(ErrorKind::usage,
                fmt::format("run.task = \"{}\": its declare() throws: {}", task, error.what()));
  } catch (...) {
    return fail(ErrorKind::usage,
                fmt::format("run.task = \"{}\": its declare(): {}", task, kThrewNoException));
  }
}

Result<std::unique_ptr<HostedTask>> make_task(const Settings& settings, TaskPlace place,
                                              const ComputeDevice& device, const HostedTask::Wrap& wrap) {
  const auto task = find_task(settings.string("run.task"));
  if (!task) return tl::unexpected(task.error());
  return HostedTask::make(**task, settings, std::move(place), device, wrap);
}

}  // namespace footplate
