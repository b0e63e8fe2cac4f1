#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/progress.h"
#include "runtime/comm/ledger.h"
#include "runtime/comm/sim/sim_world.h"

namespace footplate::test {

/// Runs `body` on a thread for each rank of a simulated world, until all have returned.
inline void run_ranks(int world_size, const std::function<void(int rank, Communicator&, Progress&)>& body) {
  SimWorld world(world_size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank)
    threads.emplace_back([&world, &body, rank] {
      Ledger ledger;
      Progress progress;
      const auto communicator = world.communicator(rank, ledger, progress);
      body(rank, *communicator, progress);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace footplate::test
