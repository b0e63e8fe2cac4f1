#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

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
  struct Parts {
    RunFence fence;
    std::filesystem::path run_directory;
    std::function<void(const std::string&)> says;  ///< gets a line for the log
    std::function<void()> orphan;                  ///< mpirun's daemon here is to end with the ranks
  };
  explicit FenceWatch(Parts parts);
  ~FenceWatch();
  FenceWatch(const FenceWatch&) = delete;
  FenceWatch& operator=(const FenceWatch&) = delete;

  /// Returns where this start is the newest, with this rank. Any thread.
  void check() const;
  /// By rank 0 of a new world, before anything else: returns where it may go on (RunFence::claim). Without
  /// the disk that is where it isn't cut off, else it tries again.
  void claim(const WorldMembers& world, bool may_be_cut_off) const;
  /// This rank is rank 0: it renews the run's lease, as the supervisor does, whose host may be lost. Any
  /// thread.
  void lead() { leads_ = true; }

 private:
  void end() const;
  void tell_of_disk() const;

  void watch();

  const Parts parts_;
  std::atomic<bool> leads_{false};
  Mutex mutex_;
  Condition ended_;
  bool ends_ GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace footplate
