#pragma once

#include <filesystem>
#include <string>

#include "protocol/result.h"

namespace footplate {

/// Where a task in Python gets its interpreter and its packages from.
struct PythonEnvironment {
  std::filesystem::path prefix;
  std::filesystem::path home;  ///< the folder of the interpreter that it was made with
  std::filesystem::path executable() const { return prefix / "bin" / "python"; }
};

/// The one that is activated (VIRTUAL_ENV), else the one that the process's LibTorch is in. Error (usage):
/// there is none, or it is of another version of Python than `version` ("3.11").
Result<PythonEnvironment> python_environment(const std::string& version);

}  // namespace footplate
