#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace footplate {

/// The way out to stdout: flushed as soon as the reader takes it, never waited for. A reader that is too slow
/// loses lines, which are counted; one that is gone costs nothing. Terminal escapes are made visible. One
/// thread.
class Outlet {
 public:
  explicit Outlet(int fd) : fd_(fd) {}

  void push(std::string_view text);

  /// Writes what the reader takes at once.
  void flush();

  /// Waits for the reader, at most so long: at the end of the run.
  void drain(std::chrono::milliseconds at_most);

  bool pending() const { return fd_ >= 0 && !buffer_.empty(); }
  int fd() const { return fd_; }

 private:
  void tell_lost();

  int fd_;  ///< -1 once nobody reads
  std::string buffer_;
  std::uint64_t lost_lines_ = 0;
};

}  // namespace footplate
