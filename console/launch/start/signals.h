#pragma once

#include <csignal>
#include <vector>

namespace footplate {

/// The signals that `footplate run` understands, blocked and read from a descriptor instead of handled: TERM,
/// INT, HUP, USR1, USR2 and CHLD. A HUP that was ignored at start (nohup) stays ignored. SIGPIPE is ignored:
/// a closed stdout ends nothing. One per process; the destructor restores the mask.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }

  /// Those that came since the last call, without CHLD, which only wakes. Never blocks.
  std::vector<int> take();

 private:
  int fd_ = -1;
  sigset_t before_{};
};

/// "SIGTERM", for messages.
const char* signal_name(int number);

}  // namespace footplate
