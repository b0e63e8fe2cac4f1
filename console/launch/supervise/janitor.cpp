#include "console/launch/supervise/janitor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "console/client/runs/process_table.h"
#include "console/launch/run_dir/missing_result.h"
#include "console/launch/run_dir/run_directory.h"
#include "console/launch/start/child.h"
#include "console/launch/supervise/ending_times.h"
#include "console/launch/supervise/other_hosts.h"
#include "protocol/host_name.h"
#include "run_files/lease.h"
#include "run_files/run_file.h"
#include "run_files/starts.h"
#include "run_files/world_terms.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr pid_t kDismissed = -1;      ///< instead of a session: the supervisor has cleared up itself
constexpr auto kSavingTakes = 30min;  ///< ranks that are not gone by then are killed
constexpr auto kStartTakes = 10s;  ///< the same for ranks that weren't ready: one may have died of the signal
constexpr auto kEndLook = 100ms;

/// Keeps a pipe of this process from looking open to whoever waits for its end.
void keep_only(std::vector<int> wanted) {
  std::vector<int> open;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error))
    open.push_back(std::atoi(entry->path().filename().c_str()));
  for (const int fd : open)
    if (fd > STDERR_FILENO && std::find(wanted.begin(), wanted.end(), fd) == wanted.end()) ::close(fd);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
}

/// Until the start is over. mpirun may wait for hosts that go on without this one.
void wait_for(const Janitor::Watched& start, const RunPlan& plan) {
  const pid_t session = start.session;
  const std::filesystem::path& directory = plan.directory;
  auto deadline = std::chrono::steady_clock::now();
  auto renew_at = deadline;
  deadline += is_starting(directory) ? std::chrono::duration_cast<std::chrono::seconds>(kStartTakes)
                                     : std::chrono::duration_cast<std::chrono::seconds>(kSavingTakes);
  for (bool has_result = false; session > 0 && !launched_processes(session).empty();) {
    const auto now = std::chrono::steady_clock::now();
    std::error_code ignored;
    if (!has_result && std::filesystem::exists(directory / "result.json", ignored)) {
      has_result = true;
      deadline = std::min(deadline, now + kResultToExit);
    }
    if (now >= deadline) break;
    if (now >= renew_at) {
      renew_at = now + kLeaseIsRenewed;
      if (plan.hosts.empty() || !is_left_out(directory, start.start))
        renew_lease(directory);  // ranks that save aren't lost
      else if (is_cut_off(directory, start.start))
        deadline = std::min(deadline, now + kLostHostToExit);
    }
    std::this_thread::sleep_for(kEndLook);
  }
  if (session > 0) end_launched(session);
}

bool others_have_it(const RunPlan& plan, const Janitor::Watched& last) {
  const auto record = read_run_file(plan.directory);
  if (record && !record->id.empty() && record->id != plan.id) return true;  // taken over
  if (plan.hosts.empty() || is_starting(plan.directory)) return false;
  if (goes_on_elsewhere(plan.directory, last.start)) return true;
  WorldTerms(plan.directory, last.start).close(host_name());
  return false;
}

[[noreturn]] void keep_watch(const RunPlan& plan, const EarlierState& earlier, const PrivateFolders& folders,
                             int pipe) {
  ::setsid();
  ::prctl(PR_SET_NAME, "footplate-clear");
  Janitor::Watched last;
  int starts = 0;
  for (Janitor::Watched next;;) {
    const ssize_t got = ::read(pipe, &next, sizeof(next));
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof(next))) break;
    if (next.session == kDismissed) ::_exit(0);
    last = next;
    ++starts;
  }
  wait_for(last, plan);
  end_stragglers(folders, kConsoleEnds);
  HowEnded how;
  how.wait_status = SIGKILL;  // most likely: a supervisor that any other signal ends clears up itself
  how.killed = "footplate run";
  how.step = last_step(folders);
  folders.remove();
  if (starts > 0 && others_have_it(plan, last)) ::_exit(0);
  end_lease(plan.directory);
  const RunResult result = write_missing_result(plan.directory, how, last.restarts);
  // A start that has trained stands as starting, too: in the pause before the next one.
  if (earlier && starts <= 1 && is_starting(plan.directory) && !has_begun(plan.directory, plan.start))
    earlier.put_back();
  else
    static_cast<void>(record_end(plan.directory, result.step));
  give_room_of_the_end_back(plan.directory);
  ::_exit(0);
}

void tell(int pipe, const Janitor::Watched& word) {
  [[maybe_unused]] const auto written = ::write(pipe, &word, sizeof(word));
}

}  // namespace

Result<Janitor> Janitor::start(const RunPlan& plan, const EarlierState& earlier,
                               const PrivateFolders& folders, std::initializer_list<int> locks) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0)
    return fail(ErrorKind::failed, std::string("can't make a pipe: ") + std::strerror(errno));
  std::vector<int> wanted(locks);
  wanted.push_back(pipe[0]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    keep_only(std::move(wanted));
    keep_watch(plan, earlier, folders, pipe[0]);
  }
  ::close(pipe[0]);
  if (pid > 0) return Janitor(pid, pipe[1]);
  ::close(pipe[1]);
  return fail(ErrorKind::failed, std::string("can't start a process: ") + std::strerror(errno));
}

Janitor::Janitor(Janitor&& other) noexcept : pid_(other.pid_), pipe_(std::exchange(other.pipe_, -1)) {}

Janitor::~Janitor() {
  if (pipe_ < 0) return;
  tell(pipe_, {kDismissed});
  ::close(pipe_);
  ::waitpid(pid_, nullptr, 0);
}

void Janitor::watch(const Watched& start) const {
  tell(pipe_, start);
}

}  // namespace footplate
