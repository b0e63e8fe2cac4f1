#include "runtime/console_link/console_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "protocol/console_mark.h"

extern char** environ;

namespace footplate {
namespace {

constexpr int kConsoleFd = 3;
/// Unless the system itself hangs (a console that waits for a dead disk): then it is left to init.
constexpr std::chrono::milliseconds kKillTakes{500};

/// posix_spawn's two parameter objects, destroyed with the scope.
struct SpawnOptions {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};

  SpawnOptions() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnOptions() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;
};

/// MPI's descriptors in a child would keep mpirun waiting for it, and a signal to the rank's process
/// group would end it: hence closefrom and a process group of its own. Not a session: Linux may schedule by
/// sessions (autogroups), and a small one beside ranks that keep every core busy has waited for seconds; in
/// theirs, a thread that wakes is served at once, and the idle priority of a busy chunk counts against them.
void describe_child(SpawnOptions& options, int socket, int log) {
  auto* actions = &options.actions;
  if (log >= 0)  // first: it may have the number that the socket gets
    posix_spawn_file_actions_adddup2(actions, log, STDERR_FILENO);
  else
    posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(actions, socket, kConsoleFd);
  posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(actions, kConsoleFd + 1);

  sigset_t signals;
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&options.attributes, &signals);
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&options.attributes, &signals);
  posix_spawnattr_setflags(&options.attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

/// This process's environment, and the mark.
std::vector<char*> environment_with(std::string& mark) {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(mark.data());
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

Result<std::unique_ptr<ConsoleProcess>> ConsoleProcess::start(const std::filesystem::path& program,
                                                              const std::filesystem::path& run_directory,
                                                              int log) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail(ErrorKind::failed, std::string("socketpair for the console: ") + std::strerror(errno));

  SpawnOptions options;
  describe_child(options, ends[1], log);
  std::string name = program, flag = "--run-dir", directory = run_directory;
  std::array<char*, 4> arguments{name.data(), flag.data(), directory.data(), nullptr};
  std::string mark = kConsoleMark;
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, name.c_str(), &options.actions, &options.attributes, arguments.data(),
                                  environment_with(mark).data());
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return fail(ErrorKind::failed, "can't start the console, " + name + ": " + std::strerror(error) +
                                       " (is it installed beside footplate-rank?)");
  }
  return std::unique_ptr<ConsoleProcess>(new ConsoleProcess(pid, ends[0]));
}

ConsoleProcess::~ConsoleProcess() {
  ::close(fd_);
  if (!reaped_) ::waitpid(pid_, nullptr, WNOHANG);
}

void ConsoleProcess::kill() {
  if (reaped_) return;
  ::kill(pid_, SIGKILL);
  await_end(kKillTakes);
}

bool ConsoleProcess::await_end(std::chrono::milliseconds at_most) {
  ::shutdown(fd_, SHUT_WR);
  const int watch = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (watch < 0) return false;
  pollfd ended{watch, POLLIN, 0};
  ::poll(&ended, 1, static_cast<int>(at_most.count()));
  ::close(watch);
  reaped_ = ::waitpid(pid_, nullptr, WNOHANG) == pid_;
  return reaped_;
}

}  // namespace footplate
