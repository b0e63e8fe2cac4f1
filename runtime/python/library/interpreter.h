#pragma once

#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>

#include "runtime/python/library/gil.h"
#include "runtime/python/load_python.h"

namespace footplate {

/// Starts Python and imports torch, once; then nobody holds the GIL. Signals stay the runtime's, and Python
/// is never finalised: what it holds goes with the process. Throws, in words for people.
void start_python(const PythonFile& file);

/// A function of footplate/hosting.py. With the GIL.
pybind11::object hosting(const char* function);

/// What a call of Python's has raised, as the runtime takes it: the place and the exception in `what()`, a
/// lack of memory as LibTorch's own exception. `details` is Python's traceback. With the GIL.
class PythonError : public std::runtime_error {
 public:
  PythonError(const std::string& what, std::string its_details)
      : std::runtime_error(what), details(std::move(its_details)) {}
  const std::string details;
};
[[noreturn]] void rethrow(pybind11::error_already_set& raised, const std::string& file);

/// `body()` with the GIL; what it raises is thrown as above. `file`: the task's.
template <class Body>
auto in_python(const std::string& file, Body body) {
  const Gil gil;
  try {
    return body();
  } catch (pybind11::error_already_set& raised) {
    rethrow(raised, file);
  }
}

}  // namespace footplate
