#include "console/client/runs/run_index.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// More runs than a person lists; bounds what a command reads.
constexpr std::size_t kMostRuns = 10'000;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path home() {
  if (const std::string home = environment("HOME"); !home.empty()) return home;
  const passwd* entry = ::getpwuid(::getuid());
  return entry == nullptr || entry->pw_dir == nullptr ? "" : entry->pw_dir;
}

/// The paths in `folder`; nothing where it can't be read.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && paths.size() < kMostRuns;
       entry.increment(error))
    paths.push_back(entry->path());
  return paths;
}

}  // namespace

fs::path runs_folder() {
  const std::string folder = environment("FOOTPLATE_RUNS");
  return folder.empty() ? fs::path("runs") : fs::path(folder);
}

fs::path state_folder() {
  const std::string state = environment("XDG_STATE_HOME");
  if (!state.empty() && state.front() == '/') return fs::path(state) / "footplate";
  const fs::path base = home();
  return base.empty() ? fs::path() : base / ".local" / "state" / "footplate";
}

fs::path index_folder() {
  const fs::path folder = state_folder();
  return folder.empty() ? fs::path() : folder / "runs";
}

namespace {

/// The link of `run_directory`, which becomes absolute; empty: there can be none.
fs::path link_to(fs::path& run_directory) {
  const fs::path folder = index_folder();
  std::error_code error;
  run_directory = fs::absolute(run_directory, error).lexically_normal();
  if (folder.empty() || error) return {};
  // The name alone isn't enough: projects have runs of the same name.
  const std::string tail = std::to_string(std::hash<std::string>{}(run_directory.string()) % 1'000'000'007);
  return folder / (run_directory.filename().string() + "@" + tail);
}

}  // namespace

void add_to_index(const fs::path& run_directory) {
  fs::path target = run_directory;
  const fs::path link = link_to(target);
  std::error_code error;
  if (link.empty()) return;
  fs::create_directories(link.parent_path(), error);
  fs::create_directory_symlink(target, link, error);
}

void remove_from_index(const fs::path& run_directory) {
  fs::path target = run_directory;
  std::error_code error;
  if (const fs::path link = link_to(target); !link.empty()) fs::remove(link, error);
}

std::vector<RunRecord> known_runs() {
  std::set<fs::path> directories;
  std::error_code error;
  for (const auto& link : entries(index_folder())) {
    const fs::path target = fs::read_symlink(link, error);
    if (error) continue;
    if (fs::exists(target, error))
      directories.insert(target.lexically_normal());
    else if (!error && fs::exists(target.parent_path(), error))
      fs::remove(link, error);  // else its disk may be another host's, or not be mounted
  }
  for (const auto& path : entries(runs_folder()))
    directories.insert(fs::absolute(path, error).lexically_normal());
  std::vector<RunRecord> runs;
  for (const auto& directory : directories)
    if (auto record = read_run(directory)) runs.push_back(*std::move(record));
  std::stable_sort(runs.begin(), runs.end(),
                   [](const RunRecord& a, const RunRecord& b) { return a.run.started > b.run.started; });
  return runs;
}

}  // namespace footplate
