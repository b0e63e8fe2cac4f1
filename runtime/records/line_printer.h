#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "protocol/mutex.h"
#include "runtime/base/condition.h"

namespace footplate {

/// Lines to a descriptor that may be slow, stuck or gone (stdout into a pager): a thread of its own
/// writes them, the queue is bounded, and a reader that has left costs nothing. Any thread.
class LinePrinter {
 public:
  /// Keeps a duplicate of `descriptor`; where it is closed, lines go nowhere.
  explicit LinePrinter(int descriptor);
  /// Waits until all is written, but no longer than a second for a reader that takes nothing.
  ~LinePrinter();

  /// Queues a line (without its newline) and returns at once. A full queue loses the line.
  void print(std::string line);
  std::uint64_t dropped() const;

 private:
  void work();
  bool write_line(const std::string& line);
  bool writable_in_time();

  int descriptor_;
  mutable Mutex mutex_;
  Condition changed_;
  std::deque<std::string> queue_ GUARDED_BY(mutex_);
  std::uint64_t dropped_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace footplate
