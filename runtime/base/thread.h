#pragma once

#include <functional>
#include <thread>

#include "runtime/base/scheduler.h"

namespace footplate {

/// std::thread with a name, under the scheduler of who starts it.
class Thread {
 public:
  Thread() = default;
  /// `name`: for top and debuggers, at most 15 letters.
  Thread(const char* name, std::function<void()> body);

  bool joinable() const { return thread_.joinable(); }
  void join();
  void detach() { thread_.detach(); }

 private:
  Scheduler* scheduler_ = nullptr;
  Scheduler::Task* task_ = nullptr;
  std::thread thread_;
};

}  // namespace footplate
