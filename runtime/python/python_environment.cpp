#include "runtime/python/python_environment.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "runtime/base/bundled_library.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// What `python3 -m venv` has written down: "home = /usr/bin".
std::map<std::string, std::string> lines_of(const fs::path& path) {
  std::map<std::string, std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (const auto sign = line.find(" = "); sign != line.npos)
      lines[line.substr(0, sign)] = line.substr(sign + 3);
  return lines;
}

/// PREFIX of PREFIX/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so: as it was opened, since behind a
/// link of the environment's it may lie elsewhere; else where it lies, since footplate's own prefix has a
/// link to it.
fs::path environment_of_libtorch() {
  const auto found = loaded_libraries("libtorch_cpu.so");
  if (found.empty()) return {};
  std::error_code error;
  fs::path prefix;
  for (fs::path path : {fs::path(found.front()).lexically_normal(), fs::canonical(found.front(), error)}) {
    constexpr int kUp = 6;
    for (int i = 0; i < kUp; ++i) path = path.parent_path();
    prefix = path;
    if (fs::exists(prefix / "bin" / "python", error)) break;
  }
  return prefix;
}

Result<PythonEnvironment> environment_in(const fs::path& prefix, const std::string& version) {
  PythonEnvironment environment{prefix, prefix / "bin"};
  std::error_code error;
  if (!fs::exists(environment.executable(), error))
    return fail(ErrorKind::usage,
                fmt::format("there is no {}; a task in Python needs the environment that LibTorch is in, or "
                            "one that is activated (VIRTUAL_ENV), with Python {} and this torch",
                            environment.executable().string(), version));
  const auto lines = lines_of(prefix / "pyvenv.cfg");
  if (const auto home = lines.find("home"); home != lines.end()) environment.home = home->second;
  auto found = lines.find("version");
  if (found == lines.end()) found = lines.find("version_info");  // as uv and virtualenv write it
  if (found != lines.end() && !(found->second + ".").starts_with(version + "."))
    return fail(ErrorKind::usage,
                fmt::format("the Python environment {} is of Python {}, this footplate runs tasks with "
                            "Python {}; make one with: python{} -m venv DIR",
                            prefix.string(), found->second, version, version));
  return environment;
}

}  // namespace

Result<PythonEnvironment> python_environment(const std::string& version) {
  if (const char* active = std::getenv("VIRTUAL_ENV"); active != nullptr && *active != '\0')
    return environment_in(active, version);
  return environment_in(environment_of_libtorch(), version);
}

}  // namespace footplate
