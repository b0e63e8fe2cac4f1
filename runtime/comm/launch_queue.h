#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/base/progress.h"
#include "runtime/base/thread.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/ledger.h"

namespace footplate {

/// The communication thread of a rank: runs blocking collectives one after the other, in the order
/// they were launched, and keeps the ledger. What an operation does is the backend's business.
class LaunchQueue {
 public:
  /// Runs one collective to its end. Communication thread.
  using Operation = std::function<Result<void>()>;

  /// `progress` tells the step for the ledger. Both outlive the queue.
  LaunchQueue(Ledger& ledger, const Progress& progress);

  /// Waits a bounded time for what was launched. An operation stuck in a dead peer is left to its
  /// thread, which ends with the process.
  ~LaunchQueue();

  LaunchQueue(const LaunchQueue&) = delete;
  LaunchQueue& operator=(const LaunchQueue&) = delete;

  /// Returns at once, unless kMaxWaiting operations wait already. After a failed operation, or close(), the
  /// later ones fail with its error without being run: the ranks are out of step.
  /// `entry`: kind, type, elements, variant and name; the queue adds step and phase.
  std::unique_ptr<Work> launch(LedgerEntry entry, Operation operation);

  /// What waits and what comes fails with `error`; what runs is the backend's to end. Any thread.
  void close(Error error);
  /// Whether an error is what comes of everything: operations that run long look at it. Any thread.
  bool closed() const;
  /// That the rank is at. Any thread.
  std::int64_t step() const { return progress_.step(); }
  /// Whether nothing runs or waits any more, within `at_most`. Any thread.
  bool wait_idle(std::chrono::milliseconds at_most);
  /// Operations are run again, numbered on from `sequence`, in a world of this generation. The launching
  /// thread, when the queue is closed and idle.
  void reopen(std::uint64_t sequence, std::uint32_t generation);

  static constexpr std::size_t kMaxWaiting = 1000;
  static_assert(kMaxWaiting + 2 < Ledger::kSize, "what isn't finished stays in the ledger");

 private:
  struct Item;
  struct Shared;
  static void serve(std::shared_ptr<Shared> shared);

  Ledger& ledger_;
  const Progress& progress_;
  std::shared_ptr<Shared> shared_;
  Thread thread_;
};

}  // namespace footplate
