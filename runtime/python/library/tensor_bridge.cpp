#include "runtime/python/library/tensor_bridge.h"

#include <dlfcn.h>
#include <torch/csrc/autograd/python_variable.h>

#include <stdexcept>
#include <string>

#include "runtime/base/bundled_library.h"

namespace footplate {
namespace {

namespace py = pybind11;

using Wrap = PyObject*(const at::TensorBase&);
/// THPVariable_Wrap. This library isn't linked with libtorch_python.so: which one it is depends on the
/// environment that is activated.
Wrap* wrap = nullptr;
PyObject* tensor_class = nullptr;

}  // namespace

void bind_tensors() {
  void* library = ::dlopen("libtorch_python.so", RTLD_NOW | RTLD_NOLOAD);
  if (library != nullptr)
    wrap = reinterpret_cast<Wrap*>(::dlsym(library, "_Z16THPVariable_WrapRKN2at10TensorBaseE"));
  if (wrap == nullptr) throw std::runtime_error("import torch has left no tensors: " + loader_error());
  tensor_class = py::module_::import("torch").attr("Tensor").cast<py::object>().release().ptr();
}

py::object to_python(const at::Tensor& tensor) {
  PyObject* object = wrap(tensor);
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

at::Tensor from_python(const py::handle& object, const char* what) {
  if (!py::isinstance(object, py::handle(tensor_class)))
    throw std::invalid_argument(std::string(what) + " a " +
                                py::str(py::type::of(object).attr("__name__")).cast<std::string>() +
                                "; it has to be a tensor");
  return THPVariable_Unpack(object.ptr());
}

}  // namespace footplate
