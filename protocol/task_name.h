#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// SettingSpec::syntax of run.task: one of the spec's choices, or a file of the user's own.
inline constexpr std::string_view kTaskName = "task";

/// What run.task begins with where it names a shared library, or a file of Python's.
inline constexpr std::string_view kPluginPrefix = "plugin:";
inline constexpr std::string_view kPythonPrefix = "python:";

inline bool is_plugin(std::string_view task) {
  return task.starts_with(kPluginPrefix);
}

inline bool is_python(std::string_view task) {
  return task.starts_with(kPythonPrefix);
}

/// One of the user's own, that is: the file knows what it declares.
inline bool is_own_task(std::string_view task) {
  return is_plugin(task) || is_python(task);
}

/// Whether it has settings and actions of its own: the others share footplate's ("": the default task).
inline bool declares_settings(std::string_view task) {
  return !task.empty() && task != "text" && task != "synthetic";
}

/// Error (usage): `text` is no value of the setting `name`, whose own tasks are `choices`.
Result<void> check_task_name(const std::string& name, const std::vector<std::string>& choices,
                             const std::string& text);

/// "one of text, synthetic, rvq, classify, plugin:PATH or python:FILE.py".
std::string allowed_tasks(const std::vector<std::string>& choices);

/// With the path made absolute from this process's folder, so that it holds wherever the run goes on.
std::string absolute_task(const std::string& task);

}  // namespace footplate
