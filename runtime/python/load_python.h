#pragma once

#include <filesystem>

#include "footplate/task.h"
#include "protocol/result.h"

namespace footplate {

/// The task that a file of Python's holds: opens libfootplate_python.so, and with it an interpreter that
/// lives as long as the process. Errors (usage), each with what helps: no such file; no library, no Python or
/// another version of it; another torch; what the file raises while it is imported.
Result<const v1::Descriptor*> load_python(const std::filesystem::path& path);

/// What the library exports under the name below, built with this program and with nothing else.
struct PythonFile {
  std::filesystem::path path;
  std::filesystem::path executable;  ///< of the environment
  std::filesystem::path modules;     ///< the folder that the module `footplate` is in
};
using OpenPythonTask = void(const PythonFile& file, Result<const v1::Descriptor*>& task);
inline constexpr const char* kOpenPythonTask = "footplate_open_python_task";

}  // namespace footplate
