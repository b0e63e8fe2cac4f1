#pragma once

#include <vector>

namespace footplate {

/// Moments in the order of a device's work, which the host is ahead of. Training thread.
class TimeMarks {
 public:
  virtual ~TimeMarks() = default;
  /// When the device has done what the calling thread has enqueued so far. False: it can't be marked (work is
  /// being recorded).
  virtual bool mark() = 0;
  /// The seconds from each mark to the next, one fewer than marks. Waits for the last one, and forgets all.
  /// Empty: the device has failed.
  virtual std::vector<double> take_seconds() = 0;
};

}  // namespace footplate
