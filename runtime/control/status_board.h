#pragma once

#include <utility>

#include "protocol/json.h"
#include "protocol/mutex.h"

namespace footplate {

/// What `status` answers (docs/protocol.md): rank 0's control thread writes it, any thread reads it.
class StatusBoard {
 public:
  Json read() const {
    MutexLock lock(mutex_);
    return status_;
  }
  void write(Json status) {
    MutexLock lock(mutex_);
    status_ = std::move(status);
  }

 private:
  mutable Mutex mutex_;
  Json status_ GUARDED_BY(mutex_);
};

}  // namespace footplate
