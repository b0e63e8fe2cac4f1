#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "protocol/fd.h"
#include "protocol/result.h"
#include "protocol/subprocess.h"

namespace footplate {

/// footplate-console as a child of rank 0: in a process group of its own, one end of a socketpair as its
/// descriptor 3, standard streams on /dev/null and a log, nothing else open: MPI's descriptors in a child
/// would keep mpirun waiting for it, and a signal to the rank's process group would end it. When this goes,
/// its socket is closed, at which the console ends itself. Control thread.
class ConsoleProcess {
 public:
  /// `program --run-dir RUN`, its standard error going to the descriptor `log` (-1: nowhere). Nothing of the
  /// run directory is touched: this waits until the child runs the program, and the disk may hang.
  static Result<std::unique_ptr<ConsoleProcess>> start(const std::filesystem::path& program,
                                                       const std::filesystem::path& run_directory, int log);
  int fd() const { return socket_.get(); }
  pid_t pid() const { return process_.pid(); }

  /// SIGKILL, and reaps it.
  void kill();
  /// Tells the console that nothing more comes, and waits until it has ended. False past `at_most`.
  bool await_end(std::chrono::milliseconds at_most);

 private:
  ConsoleProcess(Subprocess process, Fd socket) : process_(std::move(process)), socket_(std::move(socket)) {}

  Subprocess process_;
  Fd socket_;  ///< closed first, at which the console ends itself
};

}  // namespace footplate
