#include "protocol/nccl/variable_files.h"

#include <pwd.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr auto kOwnFile = "NCCL_CONF_FILE";
constexpr auto kFileOfHost = "/etc/nccl.conf";
constexpr std::size_t kLongestText = 1023;  ///< of a name, and of a value: NCCL cuts them there
constexpr std::size_t kMostOfAFile = std::size_t{1} << 20;  ///< a thousand lines of the longest kind

/// $NCCL_CONF_FILE takes the place of the user's own, even where it can't be read.
fs::path file_of_user(const Environment& environment) {
  if (const auto own = environment.find(kOwnFile); own != environment.end() && !own->second.empty())
    return own->second;
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr && entry->pw_dir != nullptr ? fs::path(entry->pw_dir) / ".nccl.conf" : fs::path();
}

}  // namespace

Environment read_variable_file(const fs::path& path) {
  Environment variables;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return variables;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostOfAFile, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  std::istringstream lines(std::move(text));
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (line.starts_with('#') || equals == std::string::npos) continue;
    variables.emplace(line.substr(0, equals).substr(0, kLongestText), line.substr(equals + 1, kLongestText));
  }
  return variables;
}

std::vector<VariableFile> nccl_files(const Environment& environment) {
  std::vector<VariableFile> files;
  for (const fs::path& path : {file_of_user(environment), fs::path(kFileOfHost)})
    if (auto variables = read_variable_file(path); !variables.empty())
      files.push_back({path.string(), std::move(variables)});
  return files;
}

}  // namespace footplate
