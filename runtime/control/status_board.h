#pragma once

#include <utility>

#include "protocol/messages/run_status.h"
#include "protocol/mutex.h"

namespace footplate {

/// What `status` answers (docs/protocol.md): rank 0's control thread writes it, any thread reads it.
class StatusBoard {
 public:
  RunStatus read() const {
    MutexLock lock(mutex_);
    return status_;
  }
  void write(RunStatus status) {
    MutexLock lock(mutex_);
    status_ = std::move(status);
  }

 private:
  mutable Mutex mutex_;
  RunStatus status_ GUARDED_BY(mutex_);
};

}  // namespace footplate
