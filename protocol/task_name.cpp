#include "protocol/task_name.h"

#include <algorithm>
#include <filesystem>

#include "protocol/schema.h"

namespace footplate {

std::string allowed_tasks(const std::vector<std::string>& choices) {
  std::string text = "one of ";
  for (const std::string& choice : choices) text += choice + ", ";
  return text + "or " + std::string(kPluginPrefix) + "PATH, a shared library of your own";
}

Result<void> check_task_name(const std::string& name, const std::vector<std::string>& choices,
                             const std::string& text) {
  if (std::ranges::find(choices, text) != choices.end()) return {};
  if (is_plugin(text) && text.size() > kPluginPrefix.size()) return {};
  std::string error = name + " can't be '" + excerpt(text) + "'; it is " + allowed_tasks(choices);
  if (text.ends_with(".so"))
    error += "; write \"" + std::string(kPluginPrefix) + excerpt(text) + "\"";
  else if (const std::string near = nearest(text, choices); !near.empty())
    error += "; did you mean '" + near + "'?";
  return fail(ErrorKind::usage, error);
}

std::string absolute_task(const std::string& task) {
  if (!is_plugin(task)) return task;
  std::error_code error;
  const auto path = std::filesystem::absolute(task.substr(kPluginPrefix.size()), error);
  return error ? task : std::string(kPluginPrefix) + path.lexically_normal().string();
}

}  // namespace footplate
