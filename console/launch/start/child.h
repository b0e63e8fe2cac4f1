#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>

#include "console/launch/start/command.h"

namespace footplate {

/// mpirun, or the only rank, as a child in a session of its own: what a terminal sends to its foreground
/// group doesn't reach it, and whatever it starts can be found by the session.
class Child {
 public:
  /// Starts `command` with /dev/null as stdin and SIGTERM blocked; stdout and stderr are appended to the
  /// files. Should this process be killed, the child gets SIGUSR2: save and stop. Call on the main thread:
  /// that signal is bound to the thread.
  static Result<Child> start(const Command& command, const std::filesystem::path& out,
                             const std::filesystem::path& err);

  pid_t pid() const { return pid_; }  ///< also the number of its session

  /// Sends a signal to the child alone (mpirun hands USR2 on to every rank).
  void signal(int number) const;

  /// Whether it has ended; does not wait. Then wait_status() is valid.
  bool ended();
  int wait_status() const { return wait_status_; }

 private:
  explicit Child(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  bool reaped_ = false;
  int wait_status_ = 0;
};

/// Kills what is left of mpirun and the ranks, and returns once all are gone, or after 5 s.
void end_launched(pid_t session);

/// The same for whatever else belongs to the run (rank 0's console and its children), told by the variable
/// that all processes of a run inherit. They end by themselves when rank 0 is gone, and get `patience` for
/// that.
void end_stragglers(const PrivateFolders& folders, std::chrono::milliseconds patience);

}  // namespace footplate
