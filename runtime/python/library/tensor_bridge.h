#pragma once

#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>

namespace footplate {

/// Finds what of libtorch_python.so is needed: the one that `import torch` has opened. Throws.
void bind_tensors();

/// The same tensor, without a copy. With the GIL.
pybind11::object to_python(const at::Tensor& tensor);
/// `what` it is, for the text of the exception: "loss() gave". With the GIL.
at::Tensor from_python(const pybind11::handle& object, const char* what);

}  // namespace footplate
