#include "runtime/python/library/open_values.h"

#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

namespace footplate {
namespace {

namespace py = pybind11;

/// Nothing: the setting is there, and of another type; or it isn't there, in `why`.
template <class Read>
std::optional<py::object> tried(Read read, std::string& why) {
  try {
    return py::cast(read());
  } catch (const std::invalid_argument& error) {
    why = error.what();
    return std::nullopt;
  }
}

}  // namespace

/// A task may ask for a setting without knowing its type, and v1::Values has none to tell.
py::object OpenValues::Shared::read(const std::string& name) const {
  const MutexLock lock(mutex_);
  if (values_ == nullptr)
    throw py::key_error(name + ": settings that aren't the task's own are read in __init__() or changed()");
  const v1::Values& values = *values_;
  std::string why;
  if (auto value = tried([&] { return values.integer(name); }, why)) return *value;
  if (auto value = tried([&] { return values.number(name); }, why)) return *value;
  if (auto value = tried([&] { return values.boolean(name); }, why)) return *value;
  if (auto value = tried([&] { return values.text(name); }, why)) return *value;
  throw py::key_error(why);
}

py::object reader(std::shared_ptr<const OpenValues::Shared> values) {
  return py::cpp_function(
      [values = std::move(values)](const std::string& name) { return values->read(name); });
}

}  // namespace footplate
