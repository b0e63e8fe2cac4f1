#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "footplate/task.h"
#include "protocol/mutex.h"
#include "runtime/base/condition.h"
#include "runtime/base/thread.h"
#include "runtime/data/mixture.h"
#include "runtime/tasks/hosted_task.h"

namespace footplate {

/// Loads batches before a step asks for them, on threads of its own. Which batches those are, and their
/// order, doesn't depend on the threads: what a step takes is the same on any number of them. Training
/// thread.
class BatchLoader {
 public:
  /// `task` outlives it.
  explicit BatchLoader(const HostedTask& task) : task_(task) {}
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// As many threads, each of which has up to `prefetch` batches ready; 0: a batch is loaded where it is
  /// taken. Forgets what was loaded. Where it starts threads, it waits until they run.
  void configure(int workers, int prefetch);
  /// How many batches may be loaded ahead.
  std::size_t room() const { return workers_.size() * static_cast<std::size_t>(prefetch_); }

  /// What will be taken from here on, in this order: the first room() of them are loaded ahead. What was
  /// expected before and isn't among them any more is dropped.
  void expect(std::span<const Draws> next);
  /// Whether take() of it wouldn't wait for a thread.
  bool is_ready(const Draws& draws);
  /// On the host. What load() threw on its thread is thrown here.
  LoadedSamples take(const Draws& draws);
  /// Once it returns no thread is in load(), and nothing is loaded ahead: what load() reads may change.
  void forget();

 private:
  enum class Progress { waiting, loading, done };
  struct Item {
    Draws draws;
    Progress progress = Progress::waiting;
    LoadedSamples loaded = {};
    std::exception_ptr error = {};
  };
  using Items = std::deque<std::shared_ptr<Item>>;

  void work();
  std::shared_ptr<Item> next_waiting() REQUIRES(mutex_);
  void load(Item& item) const;
  void stop();

  const HostedTask& task_;
  int prefetch_ = 0;
  std::vector<Thread> workers_;
  Mutex mutex_;
  Condition changed_;  ///< of anything below
  Items items_ GUARDED_BY(mutex_);
  int running_ GUARDED_BY(mutex_) = 0;  ///< threads
  int loading_ GUARDED_BY(mutex_) = 0;  ///< of them
  bool stops_ GUARDED_BY(mutex_) = false;
};

}  // namespace footplate
