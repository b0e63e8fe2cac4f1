#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// What a program is started with. Of this process it gets the environment, the descriptors named here as its
/// own first ones, and no other descriptor.
struct SpawnOptions {
  static constexpr int kNowhere = -1;    ///< a stream on /dev/null
  static constexpr int kInherited = -2;  ///< this process's own stream
  static constexpr int kSocket = 3;      ///< the child's number for `socket`

  std::filesystem::path program;                      ///< a path: PATH isn't searched
  std::string name;                                   ///< its argv[0]; empty: the path
  std::vector<std::string> arguments;                 ///< behind the name
  std::vector<std::string> environment;               ///< "NAME=value", added to this process's
  int in = kNowhere, out = kNowhere, err = kNowhere;  ///< descriptors, kNowhere or kInherited
  int socket = kNowhere;                              ///< becomes descriptor 3; kNowhere: there is none
  /// A process group of its own, no signal blocked and none ignored. Else all three as in this process. Not a
  /// session: Linux may schedule by sessions (autogroups), and a small one beside ranks that keep every core
  /// busy has waited for seconds.
  bool own_group = false;
};

/// A child of this process, which is reaped once. It isn't ended with this object. One thread.
class Subprocess {
 public:
  /// By posix_spawn, which doesn't copy the memory of a process as large as a rank; returns once the child
  /// runs the program. Errors (failed): "PROGRAM: why".
  static Result<Subprocess> start(const SpawnOptions& options);

  /// A child that has been started already.
  explicit Subprocess(pid_t pid) : pid_(pid) {}
  Subprocess(Subprocess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), reaped_(other.reaped_), wait_status_(other.wait_status_) {}
  Subprocess& operator=(Subprocess&& other) noexcept;
  /// Reaps it if it has ended.
  ~Subprocess() { ended(); }

  pid_t pid() const { return pid_; }

  /// Sends a signal to the child alone; nothing once it is reaped.
  void signal(int number) const;

  /// Whether it has ended; does not wait. Then wait_status() is valid.
  bool ended();
  /// The same, once it has ended, or after `at_most`.
  bool await_end(std::chrono::milliseconds at_most);
  /// Without a bound: for a child that was killed, or has closed its output.
  void await_end();
  /// As waitpid() has it.
  int wait_status() const { return wait_status_; }

 private:
  pid_t pid_;
  bool reaped_ = false;
  int wait_status_ = 0;
};

}  // namespace footplate
