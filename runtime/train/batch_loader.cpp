#include "runtime/train/batch_loader.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>

#include "runtime/base/give_way.h"

namespace footplate {

BatchLoader::~BatchLoader() {
  stop();
}

void BatchLoader::stop() {
  {
    const MutexLock lock(mutex_);
    stops_ = true;
    items_.clear();
  }
  changed_.notify_all();
  for (Thread& worker : workers_) worker.join();
  workers_.clear();
}

void BatchLoader::configure(int workers, int prefetch) {
  forget();
  prefetch_ = prefetch;
  if (workers_.size() == static_cast<std::size_t>(workers)) return;
  stop();
  MutexLock lock(mutex_);
  stops_ = false;
  for (int worker = 0; worker < workers; ++worker) workers_.emplace_back("loader", [this] { work(); });
  changed_.wait(lock, [this, workers]() REQUIRES(mutex_) { return running_ == workers; });
}

/// A thread of its own; load() computes on it alone.
void BatchLoader::work() {
  at::set_num_threads(1);
  give_way_to_training();
  MutexLock lock(mutex_);
  ++running_;
  changed_.notify_all();
  for (;;) {
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return stops_ || next_waiting() != nullptr; });
    if (stops_) break;
    const std::shared_ptr<Item> item = next_waiting();
    item->progress = Progress::loading;
    ++loading_;
    lock.unlock();
    load(*item);
    lock.lock();
    item->progress = Progress::done;
    --loading_;
    changed_.notify_all();
  }
  --running_;
}

void BatchLoader::load(Item& item) const {
  try {
    item.loaded = task_.load_on_host(item.draws);
  } catch (...) {
    item.error = std::current_exception();
  }
}

std::shared_ptr<BatchLoader::Item> BatchLoader::next_waiting() {
  const auto found = std::ranges::find_if(
      items_, [](const std::shared_ptr<Item>& item) { return item->progress == Progress::waiting; });
  return found == items_.end() ? nullptr : *found;
}

void BatchLoader::expect(std::span<const Draws> next) {
  if (workers_.empty()) return;
  const MutexLock lock(mutex_);
  next = next.first(std::min(next.size(), room()));
  std::size_t same = 0;
  while (same < items_.size() && same < next.size() && items_[same]->draws == next[same]) ++same;
  items_.resize(same);
  for (; same < next.size(); ++same) items_.push_back(std::make_shared<Item>(Item{.draws = next[same]}));
  changed_.notify_all();
}

bool BatchLoader::is_ready(const Draws& draws) {
  const MutexLock lock(mutex_);
  return workers_.empty() ||
         (!items_.empty() && items_.front()->draws == draws && items_.front()->progress == Progress::done);
}

LoadedSamples BatchLoader::take(const Draws& draws) {
  MutexLock lock(mutex_);
  std::shared_ptr<Item> item;
  if (!items_.empty() && items_.front()->draws == draws) {
    item = items_.front();
    items_.pop_front();
  }
  // One that no thread has begun is loaded at once here.
  if (item == nullptr || item->progress == Progress::waiting) {
    lock.unlock();
    return task_.load_on_host(draws);
  }
  changed_.wait(lock, [&item] { return item->progress == Progress::done; });
  lock.unlock();
  if (item->error) std::rethrow_exception(item->error);
  return std::move(item->loaded);
}

void BatchLoader::forget() {
  MutexLock lock(mutex_);
  items_.clear();
  changed_.wait(lock, [this]() REQUIRES(mutex_) { return loading_ == 0; });
}

}  // namespace footplate
