#include "console/launch/start/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "console/client/runs/process_table.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kProcessLook{10};   ///< between two looks at the process table
constexpr milliseconds kKillTakes{5'000};  ///< SIGKILL has worked by then, or the kernel is stuck

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const auto& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

/// Between fork and exec: system calls only.
[[noreturn]] void become(char* const* arguments, char* const* environment, int in, int out, int err,
                         pid_t parent, int report) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGUSR2);
  if (::getppid() != parent) ::_exit(127);  // it died before prctl
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (const int number : {SIGPIPE, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD})
    ::sigaction(number, &by_default, nullptr);
  // Some systems send TERM to all processes of a job, and systemd a HUP with it. mpirun would kill the ranks
  // for either while they save; they themselves start with nothing blocked.
  sigset_t held;
  sigemptyset(&held);
  for (const int number : {SIGTERM, SIGHUP, SIGINT}) sigaddset(&held, number);
  ::sigprocmask(SIG_SETMASK, &held, nullptr);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execve(arguments[0], arguments, environment);
  const int why = errno;
  [[maybe_unused]] const auto written = ::write(report, &why, sizeof(why));
  ::_exit(127);
}

int open_log(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

using Find = std::function<std::vector<ProcessEntry>()>;

bool all_gone_by(const Find& find, steady_clock::time_point deadline) {
  while (!find().empty()) {
    if (steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kProcessLook);
  }
  return true;
}

/// Not TERM first: a rank would save and stop, and all that mpirun has to clear up is in the private folders.
void end_all(const Find& find) {
  const auto deadline = steady_clock::now() + kKillTakes;
  for (auto left = find(); !left.empty() && steady_clock::now() < deadline; left = find()) {
    for (const auto& process : left) ::kill(process.pid, SIGKILL);
    std::this_thread::sleep_for(kProcessLook);
  }
}

}  // namespace

Result<Subprocess> start_child(const Command& command, const std::filesystem::path& out,
                               const std::filesystem::path& err) {
  auto arguments = pointers(command.arguments);
  auto environment = pointers(command.environment);
  int report[2] = {-1, -1};
  const int in_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out_fd = open_log(out);
  const int err_fd = open_log(err);
  const bool ready = in_fd >= 0 && out_fd >= 0 && err_fd >= 0 && ::pipe2(report, O_CLOEXEC) == 0;
  const pid_t parent = ::getpid();
  const pid_t pid = ready ? ::fork() : -1;
  if (pid == 0) become(arguments.data(), environment.data(), in_fd, out_fd, err_fd, parent, report[1]);
  int why = errno;
  for (const int fd : {in_fd, out_fd, err_fd, report[1]})
    if (fd >= 0) ::close(fd);
  const bool started = pid > 0 && ::read(report[0], &why, sizeof(why)) != static_cast<ssize_t>(sizeof(why));
  if (report[0] >= 0) ::close(report[0]);
  if (started) return Subprocess(pid);
  if (pid > 0) ::waitpid(pid, nullptr, 0);
  return fail(ErrorKind::failed, "can't start " + command.arguments.front() + ": " + std::strerror(why));
}

void end_launched(pid_t session) {
  end_all([=] { return launched_processes(session); });
}

void end_stragglers(const PrivateFolders& folders, milliseconds patience) {
  const Find find = [line = run_mark(folders)] { return processes_with_variable(line); };
  if (!all_gone_by(find, steady_clock::now() + patience)) end_all(find);
}

}  // namespace footplate
