#pragma once

#include <cstddef>
#include <vector>

#include "protocol/result.h"
#include "runtime/profile/trace_event.h"

namespace footplate {

class ComputeDevice;

/// Records LibTorch's operations, and a device's kernels, by LibTorch's profiler: those of the thread that
/// begins it, and of the backward passes that this thread starts. Nothing costs anything while it doesn't
/// record. One at a time in a process. One thread.
class StepTrace {
 public:
  /// More operations aren't worth the memory and the file: the profiler keeps each one until end().
  static constexpr std::size_t kMostEvents = 100'000;

  /// `device` outlives it.
  explicit StepTrace(const ComputeDevice& device) : device_(device) {}
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  /// Error: LibTorch was built without it, or another profiler runs (of a task in Python, say).
  Result<void> begin();
  bool is_recording() const { return recording_; }
  /// Whether there are kMostEvents already.
  bool is_full() const;
  /// What was recorded, kMostEvents at most, in the order of their beginnings. Waits for the device.
  std::vector<TraceEvent> end();

 private:
  const ComputeDevice& device_;
  bool recording_ = false;
  std::size_t counter_ = 0;  ///< the handle of the callback that counts operations
};

}  // namespace footplate
