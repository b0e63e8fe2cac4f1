#include "runtime/base/thread.h"

#include <pthread.h>

#include <utility>

namespace footplate {

Thread::Thread(const char* name, std::function<void()> body) : scheduler_(Scheduler::current()) {
  if (scheduler_ == nullptr) {
    thread_ = std::thread(std::move(body));
  } else {
    task_ = scheduler_->add(name);
    thread_ = std::thread(
        [scheduler = scheduler_, task = task_, body = std::move(body)] { scheduler->run(task, body); });
  }
  pthread_setname_np(thread_.native_handle(), name);
}

void Thread::join() {
  if (scheduler_ != nullptr) scheduler_->join(task_);
  thread_.join();
}

}  // namespace footplate
