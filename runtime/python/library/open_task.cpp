// libfootplate_python.so: Python in a rank, and a class of Python's as a task. Nothing else of footplate
// includes Python's headers.
#include <memory>
#include <string>

#include "runtime/python/library/interpreter.h"
#include "runtime/python/library/python_declaration.h"
#include "runtime/python/library/python_task.h"
#include "runtime/python/load_python.h"

namespace footplate {
namespace {

namespace py = pybind11;

/// The one file of this process. v1::Descriptor has plain functions, which find it here.
struct OpenedFile {
  std::string path;
  py::handle task_class;
  std::string name;
  v1::Declaration declaration;
  v1::Descriptor descriptor;
};
const OpenedFile* opened = nullptr;

v1::Task* make(const v1::Host& host) {
  return new PythonTask(opened->task_class, opened->path, host);
}

const OpenedFile* open_file(const std::string& path) {
  auto file = std::make_unique<OpenedFile>();
  file->path = path;
  in_python(path, [&] {
    file->task_class = hosting("open_task")(path).release();
    file->name = file->task_class.attr("__name__").cast<std::string>();
    file->declaration = declaration_from(hosting("declaration")(file->task_class).cast<std::string>());
  });
  file->descriptor.name = file->name.c_str();
  file->descriptor.declare = [] { return opened->declaration; };
  file->descriptor.make = &make;
  return file.release();
}

Result<const v1::Descriptor*> task_of(const PythonFile& file) {
  try {
    if (opened == nullptr) {
      start_python(file);
      opened = open_file(file.path.string());
    }
    if (opened->path != file.path.string())
      return fail(ErrorKind::usage, "this process runs " + opened->path + " already");
    return &opened->descriptor;
  } catch (const std::exception& error) {
    return fail(ErrorKind::usage, error.what());
  }
}

}  // namespace
}  // namespace footplate

extern "C" __attribute__((visibility("default"))) void footplate_open_python_task(
    const footplate::PythonFile& file, footplate::Result<const footplate::v1::Descriptor*>& task) {
  task = footplate::task_of(file);
}
