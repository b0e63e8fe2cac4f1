#include "runtime/stacks/symbol_thread.h"

#include <pthread.h>

#include <condition_variable>
#include <map>
#include <utility>

#include "protocol/mutex.h"

namespace footplate {

/// The thread owns it, too: one that is left behind touches nothing else.
struct SymbolThread::Shared {
  explicit Shared(OpenFile opens) : open(std::move(opens)) {}

  const OpenFile open;
  Mutex mutex;
  std::condition_variable changed;
  bool at_work GUARDED_BY(mutex) = false;  ///< from a question to the end of its answer
  bool ended GUARDED_BY(mutex) = false;
  std::map<std::string, std::vector<CodePlace>> asked GUARDED_BY(mutex);
  std::vector<std::string> answer GUARDED_BY(mutex);  ///< without symbols first, then file by file
};

SymbolThread::SymbolThread(OpenFile open)
    : shared_(std::make_shared<Shared>(std::move(open))), thread_([shared = shared_] { serve(*shared); }) {
  pthread_setname_np(thread_.native_handle(), "symbols");
}

SymbolThread::~SymbolThread() {
  MutexLock lock(shared_->mutex);
  shared_->ended = true;
  shared_->changed.notify_all();
  const bool is_stuck = shared_->at_work;
  lock.unlock();
  if (is_stuck)
    thread_.detach();
  else
    thread_.join();
}

void SymbolThread::serve(Shared& shared) {
  MutexLock lock(shared.mutex);
  for (;;) {
    while (!shared.at_work && !shared.ended) shared.changed.wait(lock.underlying());
    if (!shared.at_work) return;
    const auto asked = std::exchange(shared.asked, {});
    for (const auto& [path, places] : asked) {
      lock.unlock();
      std::vector<std::string> names = names_in(path, places, shared.open);
      lock.lock();
      for (std::size_t i = 0; i < places.size(); ++i) shared.answer[places[i].index] = std::move(names[i]);
    }
    shared.at_work = false;
    shared.changed.notify_all();
  }
}

std::vector<std::string> SymbolThread::name(const std::vector<std::uintptr_t>& addresses,
                                            std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  CodePlaces places = places_of(addresses);
  MutexLock lock(shared_->mutex);
  if (shared_->at_work) return std::move(places.texts);
  shared_->asked = std::move(places.by_file);
  shared_->answer = std::move(places.texts);
  shared_->at_work = true;
  shared_->changed.notify_all();
  while (shared_->at_work)
    if (shared_->changed.wait_until(lock.underlying(), deadline) == std::cv_status::timeout) break;
  return shared_->answer;
}

}  // namespace footplate
