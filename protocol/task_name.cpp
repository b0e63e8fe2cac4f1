#include "protocol/task_name.h"

#include <algorithm>
#include <filesystem>

#include "protocol/schema.h"

namespace footplate {
namespace {

/// Of "plugin:PATH" or "python:PATH".
std::string path_in(const std::string& task) {
  return task.substr((is_plugin(task) ? kPluginPrefix : kPythonPrefix).size());
}

}  // namespace

std::string allowed_tasks(const std::vector<std::string>& choices) {
  std::string text = "one of ";
  for (const std::string& choice : choices) text += choice + ", ";
  return text + std::string(kPluginPrefix) + "PATH, a shared library of your own, or " +
         std::string(kPythonPrefix) + "FILE.py";
}

Result<void> check_task_name(const std::string& name, const std::vector<std::string>& choices,
                             const std::string& text) {
  if (std::ranges::find(choices, text) != choices.end()) return {};
  if (is_own_task(text) && !path_in(text).empty()) return {};
  std::string error = name + " can't be '" + excerpt(text) + "'; it is " + allowed_tasks(choices);
  if (text.ends_with(".so"))
    error += "; write \"" + std::string(kPluginPrefix) + excerpt(text) + "\"";
  else if (text.ends_with(".py"))
    error += "; write \"" + std::string(kPythonPrefix) + excerpt(text) + "\"";
  else if (const std::string near = nearest(text, choices); !near.empty())
    error += "; did you mean '" + near + "'?";
  return fail(ErrorKind::usage, error);
}

std::string absolute_task(const std::string& task) {
  if (!is_own_task(task)) return task;
  const std::string path = path_in(task);
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? task : task.substr(0, task.size() - path.size()) + absolute.lexically_normal().string();
}

}  // namespace footplate
