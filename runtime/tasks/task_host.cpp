#include "runtime/tasks/task_host.h"

#include <stdexcept>
#include <variant>

namespace footplate {

template <class T>
const T& SettingsValues::of_type(const std::string& name, const char* type) const {
  if (!settings_.has(name))
    throw std::invalid_argument("the task reads the setting " + name + ": there is none");
  if (const auto* value = std::get_if<T>(&settings_.value(name))) return *value;
  throw std::invalid_argument("the task reads the setting " + name + " as " + type +
                              ": it is of another type");
}

bool SettingsValues::boolean(const std::string& name) const {
  return of_type<bool>(name, "a boolean");
}

std::int64_t SettingsValues::integer(const std::string& name) const {
  return of_type<std::int64_t>(name, "a whole number");
}

double SettingsValues::number(const std::string& name) const {
  if (settings_.has(name) && std::holds_alternative<std::int64_t>(settings_.value(name)))
    return static_cast<double>(integer(name));
  return of_type<double>(name, "a number");
}

std::string SettingsValues::text(const std::string& name) const {
  return of_type<std::string>(name, "a text");
}

}  // namespace footplate
