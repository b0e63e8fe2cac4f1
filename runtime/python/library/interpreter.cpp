#include "runtime/python/library/interpreter.h"

#include <c10/util/Exception.h>
#include <torch/version.h>

#include "runtime/base/bundled_library.h"
#include "runtime/python/library/tensor_bridge.h"

namespace footplate {
namespace {

namespace py = pybind11;

/// footplate/hosting.py; null: Python isn't there yet. Never released, as nothing of Python's is.
PyObject* hosting_module = nullptr;

void must(PyStatus status) {
  if (PyStatus_Exception(status) != 0)
    throw std::runtime_error(std::string("Python can't start: ") +
                             (status.err_msg != nullptr ? status.err_msg : "no reason given"));
}

/// As the interpreter of that path would: its environment's packages, PYTHONPATH.
void start_interpreter(const std::string& executable) {
  PyPreConfig before;
  PyPreConfig_InitPythonConfig(&before);
  before.configure_locale = 0;
  before.coerce_c_locale = 0;
  before.utf8_mode = 1;
  must(Py_PreInitialize(&before));
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.install_signal_handlers = 0;
  config.parse_argv = 0;
  PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, executable.c_str());
  if (PyStatus_Exception(status) == 0)
    status = PyConfig_SetBytesString(&config, &config.executable, executable.c_str());
  if (PyStatus_Exception(status) == 0) status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  must(status);
}

/// Two of them would be two worlds of tensors.
void check_libtorch() {
  const auto found = loaded_libraries("libtorch_cpu.so");
  if (found.size() != 1)
    throw std::runtime_error("import torch has opened a second LibTorch, " + found.back().string() +
                             ", beside " + found.front().string());
}

void prepare_python(const PythonFile& file) {
  py::module_::import("sys").attr("path").attr("insert")(0, file.modules.string());
  const py::module_ module = py::module_::import("footplate.hosting");
  hosting_module = module.ptr();
  module.inc_ref();
  hosting("take_stdout")();
  hosting("check_torch")(TORCH_VERSION);
  bind_tensors();
  check_libtorch();
}

}  // namespace

void start_python(const PythonFile& file) {
  static bool ready = false;
  if (ready) return;
  if (Py_IsInitialized() == 0) {
    start_interpreter(file.executable.string());
    PyEval_SaveThread();  // from here on it is taken for each call
  }
  in_python(file.path.string(), [&] { prepare_python(file); });
  ready = true;
}

py::object hosting(const char* function) {
  return py::handle(hosting_module).attr(function);
}

void rethrow(py::error_already_set& raised, const std::string& file) {
  if (hosting_module == nullptr) throw std::runtime_error(raised.what());
  // What C code has raised doesn't know its frames yet.
  if (raised.trace()) PyException_SetTraceback(raised.value().ptr(), raised.trace().ptr());
  const py::tuple told = hosting("explain")(raised.value(), file);
  const auto text = told[0].cast<std::string>();
  if (told[2].cast<bool>()) throw c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, text);
  throw PythonError(text, told[1].cast<std::string>());
}

}  // namespace footplate
