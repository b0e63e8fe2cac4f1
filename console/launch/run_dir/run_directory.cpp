#include "console/launch/run_dir/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>

#include "console/client/link/find_run.h"
#include "console/client/runs/process_table.h"
#include "console/client/runs/run_index.h"
#include "console/client/runs/run_record.h"
#include "console/launch/run_dir/missing_result.h"
#include "protocol/exit_codes.h"
#include "protocol/host_name.h"
#include "protocol/iso_time.h"
#include "protocol/reserved_file.h"
#include "run_files/checkpoint_folders.h"
#include "run_files/file_names.h"
#include "run_files/result_file.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 64;
constexpr std::chrono::seconds kLastWords{5};      ///< of a supervisor after its run's end
constexpr std::chrono::seconds kJanitorTakes{20};  ///< to end ranks that nobody supervises any more
constexpr std::chrono::milliseconds kLockLook{20};
constexpr int kMostNumbers = 100'000;  ///< tried for a free name

}  // namespace

Result<void> check_run_name(const std::string& name) {
  const bool good = !name.empty() && name.size() <= kLongestName && name.front() != '.' &&
                    name.front() != '-' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                    });
  if (good) return {};
  return fail(ErrorKind::usage,
              "'" + name + "' can't be the name of a run; allowed: letters, digits, '-', '_' and '.', 1 to " +
                  std::to_string(kLongestName) + " of them, not starting with '-' or '.'");
}

namespace {

Result<fs::path> make_runs_folder() {
  std::error_code error;
  const fs::path folder = fs::absolute(runs_folder(), error);
  if (!error) fs::create_directories(folder, error);
  if (error)
    return fail(ErrorKind::usage,
                "can't make the folder of runs " + folder.string() + ": " + error.message());
  return folder.lexically_normal();
}

int newest_start(const fs::path& directory) {
  int newest = 0;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    constexpr std::string_view kPrefix = "config-";
    int start = 0;
    if (name.rfind(kPrefix, 0) != 0) continue;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), start);
    newest = std::max(newest, start);
  }
  return newest;
}

Error live_run(const fs::path& directory) {
  const std::string name = directory.filename();
  return {ErrorKind::usage, "a live run has the name " + name + " (" + directory.string() +
                                "); see it with: footplate status " + name +
                                "; choose another --name, or stop it with: footplate stop " + name};
}

/// Slurm has ended the job that the run is in, or lost its host, before it began this one again: nobody has
/// to be waited for.
bool was_before(const RunRecord& record, const std::optional<SlurmJob>& job) {
  return job && record.run.slurm_job == job->id && record.run.slurm_restarts < job->restarts;
}

/// How long the lock may be held yet: the run has ended and its supervisor has a few last words to say, or
/// its processes were killed and the kernel is still clearing them away, or the janitor is ending the ranks
/// of a supervisor that was killed. 0: for as long as the run is live.
std::chrono::seconds lock_ends_within(const fs::path& directory, const std::optional<SlurmJob>& job) {
  const auto record = read_run(directory);
  if (!record) return {};
  if (record->life != Life::live || was_before(*record, job)) return kLastWords;
  return record->launcher_is_gone() ? kJanitorTakes : std::chrono::seconds(0);
}

/// The lock ends with the process and its copies, however they end; nothing has to be cleared up.
Result<int> lock_directory(const fs::path& directory, const std::optional<SlurmJob>& job) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return fail(ErrorKind::failed, "can't open " + directory.string() + ": " + std::strerror(errno));
  const auto began = std::chrono::steady_clock::now();
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fd;  // a file system without locks: the record's processes have to do
    if (std::chrono::steady_clock::now() - began >= lock_ends_within(directory, job)) {
      ::close(fd);
      return tl::unexpected(live_run(directory));
    }
    std::this_thread::sleep_for(kLockLook);
  }
  return fd;
}

}  // namespace

bool came_to_nothing(const fs::path& directory) {
  const auto result = read_result_file(directory / kResultFile);
  std::error_code none;
  return result && result->code == static_cast<int>(ExitCode::usage) && result->step == 0 &&
         newest_checkpoint(directory).empty() &&
         (fs::file_size(directory / kStartsFile, none) == 0 || none);  // has a line where one has trained
}

Result<RunDirectory> take_run_directory(const std::string& name, bool go_on,
                                        const std::optional<SlurmJob>& job) {
  if (auto good = check_run_name(name); !good) return tl::unexpected(good.error());
  const auto folder = make_runs_folder();
  if (!folder) return tl::unexpected(folder.error());
  const fs::path path = *folder / name;
  bool made = ::mkdir(path.c_str(), 0700) == 0;
  if (!made && errno != EEXIST)
    return fail(ErrorKind::usage,
                "can't make the run's folder " + path.string() + ": " + std::strerror(errno));
  auto lock = lock_directory(path, job);
  if (!lock) return tl::unexpected(lock.error());
  std::error_code unreadable;
  if (fs::is_empty(path, unreadable) && !unreadable) made = true;  // somebody else made it, and let go of it
  if (!made) {
    const auto record = read_run(path);
    std::optional<Error> taken;
    if (record && record->life == Life::live && !was_before(*record, job))
      taken = live_run(path);
    else if (!go_on)
      taken = Error{ErrorKind::usage, "there is a run " + name + " already (" + path.string() + ")" +
                                          (record ? ", it " + record->outcome() : "") +
                                          "; choose another --name, or go on with it: --resume auto"};
    if (taken) {
      ::close(*lock);
      return tl::unexpected(*taken);
    }
  }
  return RunDirectory{path, *lock, newest_start(path), made, made ? EarlierState() : EarlierState::of(path)};
}

Result<RunDirectory> take_free_run_directory(const std::string& stem) {
  const auto folder = make_runs_folder();
  if (!folder) return tl::unexpected(folder.error());
  std::string base = stem.substr(0, kLongestName - 8);
  if (!check_run_name(base)) base = "run";
  for (int number = 1; number <= kMostNumbers; ++number) {
    const std::string name = base + "-" + std::to_string(number);
    // Whoever makes it has it: a lock isn't seen by other hosts where the disk has none between them.
    if (::mkdir((*folder / name).c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      return fail(ErrorKind::usage,
                  "can't make the run's folder " + (*folder / name).string() + ": " + std::strerror(errno));
    }
    auto taken = take_run_directory(name, false);
    // A run of this name may have begun since: then the next number.
    std::error_code ignored;
    if (taken || !fs::exists(*folder / name, ignored)) return taken;
  }
  return fail(ErrorKind::usage,
              "no free name " + base + "-N in " + folder->string() + "; give one with --name");
}

void abandon_run_directory(const RunDirectory& directory) {
  std::error_code ignored;
  if (directory.made) fs::remove_all(directory.path, ignored);
  directory.earlier.put_back();
  if (directory.lock >= 0) ::close(directory.lock);
}

void set_aside_result(const fs::path& directory, int start) {
  std::error_code ignored;
  fs::path earlier = earlier_result_path(directory, start);
  // A start that came to nothing has no number of its own, and doesn't take the place of one that ran.
  if (fs::exists(earlier, ignored)) earlier.replace_filename(earlier.stem().string() + "-not-started.json");
  fs::rename(directory / kResultFile, earlier, ignored);
}

bool is_starting(const fs::path& directory) {
  const auto record = read_run_file(directory);
  return record && record->state == RunState::starting;
}

void reserve_room_for_the_end(const fs::path& directory, int ranks) {
  // Where even that isn't to be had the run starts all the same, and says later what it can't write.
  constexpr std::size_t kRest = 8192;
  constexpr std::size_t kRankEntry = 256;
  reserve_room(directory / kRunFile, kRest + kRankEntry * static_cast<std::size_t>(ranks));
  reserve_room(directory / kResultFile, kRest);
}

void give_room_of_the_end_back(const fs::path& directory) {
  for (const char* name : {kRunFile, kResultFile}) give_room_back(directory / name);
}

RunFile starting_record(const RunPlan& plan, const std::string& socket) {
  RunFile run;
  run.id = plan.id;
  run.name = plan.name;
  run.directory = plan.directory.string();
  run.state = RunState::starting;
  run.socket = socket;
  run.host = host_name();
  run.launcher_host = run.host;
  run.started = iso_time(std::chrono::system_clock::now());
  run.world_size = plan.ranks;
  run.ranks_asked = plan.pool.ranks > 0 ? plan.pool.ranks : plan.ranks;
  run.hosts = host_list_text(plan.hosts);
  run.named_hosts = named_hosts(plan.pool);
  run.spare_hosts = plan.pool.spare();
  if (plan.job) {
    run.slurm_job = plan.job->id;
    run.slurm_restarts = plan.job->restarts;
  }
  run.launcher_pid = ::getpid();
  run.launcher_started = process_entry(::getpid()).started;
  if (const auto before = read_run_file(plan.directory)) run.step = before->step;
  return run;
}

}  // namespace footplate
