#pragma once

#include <sys/types.h>

#include "console/launch/run_dir/earlier_state.h"
#include "console/launch/start/plan.h"
#include "run_files/private_folders.h"

namespace footplate {

/// A small process that outlives a killed supervisor: it waits for the ranks (which were told to save and
/// stop by the supervisor's death), removes the private folders, and writes the result and the record's end.
/// It also holds the locks until then. A supervisor that ends by itself dismisses it.
class Janitor {
 public:
  /// Forks. `earlier` is put back where the ranks never were ready. `locks` are the descriptors it keeps.
  /// Call before anything else is opened that must not be inherited, and with signals blocked.
  static Result<Janitor> start(const RunPlan& plan, const EarlierState& earlier,
                               const PrivateFolders& folders, std::initializer_list<int> locks);

  Janitor(Janitor&& other) noexcept;
  Janitor& operator=(Janitor&&) = delete;
  ~Janitor();  ///< dismisses it

  struct Watched {
    pid_t session = 0;  ///< has to be over before anything is removed
    int start = 0;
    int restarts = 0;  ///< after failures, so far
  };
  void watch(const Watched& start) const;

 private:
  Janitor(pid_t pid, int pipe) : pid_(pid), pipe_(pipe) {}

  pid_t pid_;
  int pipe_;
};

}  // namespace footplate
