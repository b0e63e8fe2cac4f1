#include "runtime/checkpoint/background_thread.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "runtime/base/give_way.h"

namespace footplate {

void BackgroundThread::start(std::function<void()> work) {
  wait();
  busy_.store(true, std::memory_order_release);
  const auto run = [this, work = std::move(work)] {
    work();
    busy_.store(false, std::memory_order_release);
  };
  try {
    thread_ = std::thread([run] {
      pthread_setname_np(pthread_self(), "checkpoint");
      give_way_to_training();
      run();
    });
  } catch (const std::system_error&) {
    run();
  }
}

void BackgroundThread::wait() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace footplate
