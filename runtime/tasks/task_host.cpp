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

const Json& CallArguments::at(const std::string& name) const {
  const auto found = arguments_.find(name);
  if (found != arguments_.end()) return *found;
  throw std::invalid_argument("the task reads the argument " + name +
                              ": it was left out, or the action has none of that name; has() tells");
}

bool CallArguments::boolean(const std::string& name) const {
  if (at(name).is_boolean()) return at(name).get<bool>();
  throw std::invalid_argument("the task reads the argument " + name + " as a boolean: it is of another type");
}

std::int64_t CallArguments::integer(const std::string& name) const {
  if (at(name).is_number_integer()) return at(name).get<std::int64_t>();
  throw std::invalid_argument("the task reads the argument " + name +
                              " as a whole number: it is of another type");
}

double CallArguments::number(const std::string& name) const {
  if (at(name).is_number()) return at(name).get<double>();
  throw std::invalid_argument("the task reads the argument " + name + " as a number: it is of another type");
}

std::string CallArguments::text(const std::string& name) const {
  if (at(name).is_string()) return at(name).get<std::string>();
  throw std::invalid_argument("the task reads the argument " + name + " as a text: it is of another type");
}

bool CallArguments::has(const std::string& name) const {
  return arguments_.contains(name);
}

}  // namespace footplate
