// footplate rm: deletes runs that are over.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "console/cli/commands.h"
#include "console/client/link/find_run.h"
#include "console/client/render/text.h"
#include "console/client/runs/run_index.h"
#include "protocol/exit_codes.h"
#include "run_files/checkpoint_folders.h"
#include "run_files/file_names.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

struct RemoveOptions {
  std::vector<std::string> runs;
  bool force = false;
};

/// A run that is over, and that nobody can start again while this is held.
struct Doomed {
  RunRecord run;
  fs::path folder;  ///< where the files are: the run's directory may be a link
  int lock = -1;
};

/// Nothing: `all` has it already.
Result<std::optional<Doomed>> take(const std::string& name, const std::vector<Doomed>& all) {
  const auto run = find_run(name, Wanted::any);
  if (!run) return tl::unexpected(run.error());
  if (run->life == Life::live)
    return fail(ErrorKind::usage, "run " + run->name() + " lives" +
                                      (run->elsewhere() ? " on host " + run->host() : "") + " (" +
                                      run->directory.string() +
                                      "), and nothing is deleted; stop it first: "
                                      "footplate stop " +
                                      run->name());
  std::error_code error;
  Doomed doomed{*run, fs::canonical(run->directory, error), -1};
  if (error) return fail(ErrorKind::failed, run->directory.string() + ": " + error.message());
  for (const Doomed& other : all)
    if (other.folder == doomed.folder) return std::nullopt;
  doomed.lock = ::open(doomed.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (doomed.lock >= 0 && ::flock(doomed.lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return fail(ErrorKind::usage,
                "run " + run->name() + " is being started, or is just ending; nothing is deleted");
  return doomed;
}

/// Of files, not of what they are links to.
std::uintmax_t bytes_in(const fs::path& folder, std::size_t& files) {
  std::uintmax_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->is_regular_file(error) || entry->is_symlink(error)) continue;
    const auto size = entry->file_size(error);
    ++files;
    if (!error) bytes += size;
    error.clear();
  }
  return bytes;
}

/// "kjv-1: ended at step 2056 (done), 3 checkpoints, 41.2 MB in 27 files, /home/ada/runs/kjv-1"
std::string description(const Doomed& doomed) {
  std::size_t checkpoints = 0;
  for (const fs::path& branch : list_branches(doomed.folder)) checkpoints += list_checkpoints(branch).size();
  std::size_t files = 0;
  char size[32];
  std::snprintf(size, sizeof(size), "%.1f MB", static_cast<double>(bytes_in(doomed.folder, files)) / 1e6);
  const RunRecord& run = doomed.run;
  return run.name() + ": " + std::string(to_string(run.life)) + " at step " + std::to_string(run.step()) +
         ", " + std::to_string(checkpoints) + (checkpoints == 1 ? " checkpoint, " : " checkpoints, ") + size +
         " in " + std::to_string(files) + " files, " + doomed.folder.string();
}

/// The record goes last: where this is interrupted, the same command finds the rest.
Result<void> remove_run(const Doomed& doomed) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(doomed.folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().filename() != kRunFile) entries.push_back(entry->path());
  for (const fs::path& path : entries)
    if (!error) fs::remove_all(path, error);
  if (!error) fs::remove_all(doomed.folder, error);
  if (!error && fs::is_symlink(fs::symlink_status(doomed.run.directory)))
    fs::remove(doomed.run.directory, error);
  if (error)
    return fail(ErrorKind::failed, "can't delete all of " + doomed.folder.string() + ": " + error.message());
  remove_from_index(doomed.run.directory);
  return {};
}

/// Whether a person says yes. Only asked on a terminal.
bool agrees(std::size_t runs) {
  std::fprintf(stderr, "delete %s for good? [y/N] ", runs == 1 ? "this run" : "these runs");
  std::fflush(stderr);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

Result<int> remove_runs(const RemoveOptions& options) {
  std::vector<Doomed> all;
  for (const std::string& name : options.runs) {
    if (name.empty()) return fail(ErrorKind::usage, "rm takes the names or paths of runs; one is empty");
    auto doomed = take(name, all);
    if (!doomed) return tl::unexpected(doomed.error());
    if (!*doomed) continue;
    all.push_back(**std::move(doomed));
  }
  const bool at_terminal = ::isatty(STDIN_FILENO) == 1;
  std::string list;
  for (const Doomed& doomed : all) list += "  " + printable(description(doomed)) + "\n";
  if (!options.force && !at_terminal)
    return fail(ErrorKind::usage,
                "rm asks before it deletes, and stdin is no terminal; --force deletes\n" + list);
  std::fprintf(stderr, "%s", list.c_str());
  if (!options.force && !agrees(all.size())) {
    std::fprintf(stderr, "nothing is deleted\n");
    return static_cast<int>(ExitCode::failed);
  }
  for (const Doomed& doomed : all) {
    if (auto removed = remove_run(doomed); !removed) return tl::unexpected(removed.error());
    std::printf("deleted %s\n", printable(doomed.run.name()).c_str());
  }
  return 0;
}

}  // namespace

Handler declare_rm(CLI::App& command) {
  auto options = std::make_shared<RemoveOptions>();
  command.add_option("RUN", options->runs, "names or paths of runs that are over")->required();
  command.add_flag("-f,--force", options->force, "without asking");
  return [options] { return remove_runs(*options); };
}

}  // namespace footplate
