#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "protocol/result.h"

namespace footplate {

/// footplate-console as a child of rank 0: in a process group of its own, one end of a socketpair as its
/// descriptor 3, standard streams on /dev/null and a log, nothing else open. Control thread.
class ConsoleProcess {
 public:
  /// `program --run-dir RUN`, its standard error going to the descriptor `log` (-1: nowhere). Nothing of the
  /// run directory is touched: this waits until the child runs the program, and the disk may hang.
  static Result<std::unique_ptr<ConsoleProcess>> start(const std::filesystem::path& program,
                                                       const std::filesystem::path& run_directory, int log);
  /// Closes the socket, at which the console ends itself. Reaps it if it has.
  ~ConsoleProcess();
  ConsoleProcess(const ConsoleProcess&) = delete;
  ConsoleProcess& operator=(const ConsoleProcess&) = delete;

  int fd() const { return fd_; }
  pid_t pid() const { return pid_; }

  /// SIGKILL, and reaps it.
  void kill();
  /// Tells the console that nothing more comes, and waits until it has ended. False past `at_most`.
  bool await_end(std::chrono::milliseconds at_most);

 private:
  ConsoleProcess(pid_t pid, int fd) : pid_(pid), fd_(fd) {}

  pid_t pid_;
  int fd_;
  bool reaped_ = false;
};

}  // namespace footplate
