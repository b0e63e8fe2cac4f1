#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "runtime/comm/communicator.h"
#include "runtime/comm/ledger.h"
#include "runtime/control/progress.h"

namespace footplate {

/// How a simulated world misbehaves.
struct SimOptions {
  std::uint64_t seed = 1;
  std::chrono::microseconds max_delay{0};  ///< each rank is late by up to this, by `seed`, at each operation
};

/// A world of ranks that are threads of one process: the Communicator of tests. Sums are formed in
/// rank order. Ranks that meet with different operations get an error that says which.
class SimWorld {
 public:
  explicit SimWorld(int world_size, SimOptions options = {});
  ~SimWorld();

  /// The communicator of one rank; `ledger` and `progress` outlive it. Any thread; once for each rank.
  std::unique_ptr<Communicator> communicator(int rank, Ledger& ledger, const Progress& progress);

  /// From now on every operation of every rank fails, those under way included: a rank has died.
  /// Any thread.
  void break_world(int dead_rank);

 private:
  class Meeting;
  std::shared_ptr<Meeting> meeting_;
};

}  // namespace footplate
