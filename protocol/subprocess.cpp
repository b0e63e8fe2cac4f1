#include "protocol/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "protocol/fd.h"

extern char** environ;

namespace footplate {
namespace {

/// The child's descriptors. Each is copied first beyond the numbers that the streams get, so that none is
/// replaced before it is in its place.
class Descriptors {
 public:
  Descriptors() { posix_spawn_file_actions_init(&actions_); }
  ~Descriptors() { posix_spawn_file_actions_destroy(&actions_); }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  void stream(int number, int fd) {
    if (fd == SpawnOptions::kNowhere)
      posix_spawn_file_actions_addopen(&actions_, number, "/dev/null",
                                       number == STDIN_FILENO ? O_RDONLY : O_WRONLY, 0);
    else if (fd != SpawnOptions::kInherited)
      place(number, fd);
  }
  void place(int number, int fd) {
    copies_.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, SpawnOptions::kSocket + 1));
    if (!copies_.back() && error_ == 0) error_ = errno;
    posix_spawn_file_actions_adddup2(&actions_, copies_.back().get(), number);
  }
  void close_from(int number) { posix_spawn_file_actions_addclosefrom_np(&actions_, number); }

  int error() const { return error_; }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
  std::vector<Fd> copies_;
  int error_ = 0;
};

class Attributes {
 public:
  Attributes() { posix_spawnattr_init(&attributes_); }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  void own_group() {
    sigset_t signals;
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

/// posix_spawn writes to none of them.
void add_pointers(std::vector<char*>& list, const std::vector<std::string>& words) {
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
}

}  // namespace

Result<Subprocess> Subprocess::start(const SpawnOptions& options) {
  Descriptors descriptors;
  descriptors.stream(STDERR_FILENO, options.err);
  descriptors.stream(STDIN_FILENO, options.in);
  descriptors.stream(STDOUT_FILENO, options.out);
  const bool socket = options.socket >= 0;
  if (socket) descriptors.place(SpawnOptions::kSocket, options.socket);
  descriptors.close_from(socket ? SpawnOptions::kSocket + 1 : STDERR_FILENO + 1);
  Attributes attributes;
  if (options.own_group) attributes.own_group();

  const std::string program = options.program.string();
  const std::string& name = options.name.empty() ? program : options.name;
  std::vector<char*> arguments = {const_cast<char*>(name.c_str())};
  add_pointers(arguments, options.arguments);
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.push_back(*variable);
  add_pointers(environment, options.environment);
  environment.push_back(nullptr);

  pid_t pid = -1;
  int error = descriptors.error();
  if (error == 0)
    error = ::posix_spawn(&pid, program.c_str(), descriptors.get(), attributes.get(), arguments.data(),
                          environment.data());
  if (error != 0) return fail(ErrorKind::failed, program + ": " + std::strerror(error));
  return Subprocess(pid);
}

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(reaped_, other.reaped_);
  std::swap(wait_status_, other.wait_status_);
  return *this;
}

void Subprocess::signal(int number) const {
  if (pid_ > 0 && !reaped_) ::kill(pid_, number);
}

bool Subprocess::ended() {
  if (pid_ > 0 && !reaped_) reaped_ = ::waitpid(pid_, &wait_status_, WNOHANG) == pid_;
  return reaped_;
}

bool Subprocess::await_end(std::chrono::milliseconds at_most) {
  if (ended()) return true;
  const Fd watch(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!watch) return false;
  pollfd end{watch.get(), POLLIN, 0};
  ::poll(&end, 1, static_cast<int>(at_most.count()));
  return ended();
}

void Subprocess::await_end() {
  while (pid_ > 0 && !reaped_) {
    const pid_t found = ::waitpid(pid_, &wait_status_, 0);
    if (found < 0 && errno == EINTR) continue;
    reaped_ = true;
  }
}

}  // namespace footplate
