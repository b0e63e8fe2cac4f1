#include "console/launch/start/find_rank.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/layout.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolder = "torch-";  ///< in the wheel, before the version

/// Of torch, that footplate-runtime has programs for; the newest last.
std::vector<std::string> versions_in(const fs::path& runtimes) {
  std::vector<std::string> versions;
  std::error_code error;
  for (fs::directory_iterator entry(runtimes, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kFolder)) versions.push_back(name.substr(kFolder.size()));
  }
  std::sort(versions.begin(), versions.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);  // 2.9.1 before 2.11.0
  });
  return versions;
}

Result<fs::path> rank_of_wheel(const fs::path& runtimes) {
  const auto versions = versions_in(runtimes);
  if (versions.empty())
    return fail(ErrorKind::usage, runtimes.string() +
                                      " has no footplate-rank; install it again: pip install "
                                      "--force-reinstall --no-deps footplate-runtime");
  std::string wanted;
  for (const auto& version : versions) wanted += (wanted.empty() ? "" : " or ") + version;
  const fs::path torch = runtimes.parent_path() / "torch";
  std::ifstream file(torch / "version.py");
  std::stringstream text;
  text << file.rdbuf();
  const std::string found = torch_version_in(text.str());
  if (std::find(versions.begin(), versions.end(), found) != versions.end())
    return runtimes / (std::string(kFolder) + found) / "bin" / "footplate-rank";
  const std::string there =
      found.empty() ? "there is no torch in " + torch.string() : torch.string() + " is torch " + found;
  return fail(ErrorKind::usage, there + "; this footplate-runtime was built for torch " + wanted +
                                    ", and other versions don't fit: pip install torch==" + versions.back());
}

}  // namespace

std::string torch_version_in(const std::string& version_py) {
  constexpr std::string_view kName = "__version__ = '";
  const auto line = version_py.find(kName);
  if (line == std::string::npos) return {};
  const std::string rest = version_py.substr(line + kName.size());
  return rest.substr(0, rest.find_first_of("+'"));
}

Result<fs::path> find_rank(const fs::path& program_folder) {
  const fs::path beside = find_part(Part::rank, program_folder);
  std::error_code ignored;
  if (fs::exists(beside, ignored)) return beside;
  const fs::path runtimes = find_part(Part::runtimes, program_folder);
  if (fs::is_directory(runtimes, ignored)) return rank_of_wheel(runtimes);
  return fail(ErrorKind::usage, "no program " + beside.string() +
                                    "; build it with scripts/run or ninja, or install it: pip install "
                                    "footplate-runtime");
}

}  // namespace footplate
