#include "console/host/lua_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

namespace footplate::host {
namespace {

/// Descriptors of the new process: nothing to read, its errors in the console's log, the socketpair as 3.
class Actions {
 public:
  explicit Actions(int socket) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, socket, 3);
    posix_spawn_file_actions_addclosefrom_np(&actions_, 4);
  }
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

/// A process group of its own, so that a job's children can be told from the console's; no blocked or ignored
/// signals. Not a session of its own: see runtime/console_link/console_process.cpp.
class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes_, &all);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

}  // namespace

void Reaper::reap() {
  std::erase_if(pids_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
}

Result<std::unique_ptr<LuaProcess>> LuaProcess::start(const std::filesystem::path& program,
                                                      std::size_t unread_limit, Reaper& reaper) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
    return fail(ErrorKind::failed, std::string("can't make a socketpair: ") + std::strerror(errno));
  Fd ours(pair[0]);
  const Fd theirs(pair[1]);
  std::string name = program.filename();
  std::array<char*, 2> arguments = {name.data(), nullptr};
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, program.c_str(), Actions(theirs.get()).get(), Attributes().get(),
                                  arguments.data(), environ);
  if (error != 0)
    return fail(ErrorKind::failed, "can't start " + program.string() + ": " + std::strerror(error));
  return std::make_unique<LuaProcess>(pid, Connection(std::move(ours), unread_limit), reaper);
}

LuaProcess::~LuaProcess() {
  kill();
  if (!ended()) reaper_.adopt(pid_);
}

void LuaProcess::kill() {
  if (!reaped_) ::kill(pid_, SIGKILL);
}

std::optional<std::string> LuaProcess::ended() {
  int status = 0;
  if (!reaped_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    reaped_ = true;
    how_ = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                               : "exit code " + std::to_string(WEXITSTATUS(status));
  }
  return reaped_ ? std::optional(how_) : std::nullopt;
}

std::optional<std::chrono::nanoseconds> LuaProcess::cpu_time() const {
  clockid_t clock{};
  timespec time{};
  if (reaped_ || ::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace footplate::host
