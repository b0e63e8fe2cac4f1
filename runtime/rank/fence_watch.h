#pragma once

#include <functional>
#include <string>

#include "protocol/mutex.h"
#include "run_files/run_fence.h"
#include "runtime/base/condition.h"
#include "runtime/base/thread.h"

namespace footplate {

/// Ends this process once its start is over (RunFence), before it writes anything that is the newer start's:
/// by itself every few seconds, and where check() is called. It ends by SIGKILL: any other end would make the
/// mpirun that had started it end the ranks that go on.
class FenceWatch {
 public:
  /// `says` gets a line for the log, once.
  FenceWatch(RunFence fence, std::function<void(const std::string&)> says);
  ~FenceWatch();
  FenceWatch(const FenceWatch&) = delete;
  FenceWatch& operator=(const FenceWatch&) = delete;

  /// Returns where this start is the newest. Any thread.
  void check() const;

 private:
  void watch();

  const RunFence fence_;
  const std::function<void(const std::string&)> says_;
  Mutex mutex_;
  Condition ended_;
  bool ends_ GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace footplate
