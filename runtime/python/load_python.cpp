#include "runtime/python/load_python.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "protocol/layout.h"
#include "protocol/task_name.h"
#include "runtime/base/bundled_library.h"
#include "runtime/python/python_environment.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// Packages in C look for Python among what every library sees. The one of the environment's own
/// interpreter, where it has one; else the system's.
void* open_interpreter(const PythonEnvironment& environment) {
  constexpr int kFlags = RTLD_NOW | RTLD_GLOBAL;
  const fs::path beside = environment.home.parent_path() / "lib" / FOOTPLATE_LIBPYTHON;
  if (void* library = ::dlopen(beside.c_str(), kFlags)) return library;
  return ::dlopen(FOOTPLATE_LIBPYTHON, kFlags);
}

Result<const v1::Descriptor*> open_task(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    return fail(ErrorKind::usage, fs::exists(path, error)
                                      ? "that is no file; a task in Python is one file, FILE.py"
                                      : "there is no such file; its path counts from the folder that "
                                        "footplate run is called in");
  const auto environment = python_environment(FOOTPLATE_PYTHON_VERSION);
  if (!environment) return tl::unexpected(environment.error());
  if (open_interpreter(*environment) == nullptr)
    return fail(ErrorKind::usage,
                fmt::format("Python can't be loaded: {}; Debian's package libpython{} has it", loader_error(),
                            FOOTPLATE_PYTHON_VERSION));
  const fs::path library = find_part(Part::python_library, own_folder());
  void* opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    return fail(ErrorKind::usage, fmt::format("tasks in Python can't be run: {}", loader_error()));
  const auto open = reinterpret_cast<OpenPythonTask*>(::dlsym(opened, kOpenPythonTask));
  if (open == nullptr)
    return fail(ErrorKind::usage, library.string() + " isn't footplate's: " + loader_error());
  Result<const v1::Descriptor*> task = nullptr;
  open({path, environment->executable(), find_part(Part::python_modules, own_folder())}, task);
  return task;
}

}  // namespace

Result<const v1::Descriptor*> load_python(const fs::path& path) {
  auto task = open_task(path);
  if (!task)
    return fail(ErrorKind::usage,
                fmt::format("run.task = \"{}{}\": {}", kPythonPrefix, path.string(), task.error().message));
  return task;
}

}  // namespace footplate
