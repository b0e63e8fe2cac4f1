#include "runtime/comm/batch_all_reduce.h"

#include <thread>

#include "runtime/comm/sim/sim_world.h"
#include "tests/unit/comm/batch_all_reduce_cases.h"

namespace footplate {
namespace {

using cases::Metrics;

TEST(BatchAllReduce, SumsBuffersOfMixedSizesAndTypesByOneReductionForEachType) {
  SimWorld world(3);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&world, rank] {
      Ledger ledger;
      Progress progress;
      const auto communicator = world.communicator(rank, ledger, progress);
      cases::expect_batches_are_summed(*communicator, ledger);
    });
  }
  for (auto& rank : ranks) rank.join();
}

TEST(BatchAllReduce, KeepsTheLocalValuesWhereItFails) {
  SimWorld world(2);
  Ledger ledger;
  Progress progress;
  const auto communicator = world.communicator(0, ledger, progress);
  Metrics mine(1);
  const auto work = batch_all_reduce(*communicator, mine.buffers(), ReduceOp::sum, "eval sums");
  EXPECT_FALSE(work->done());
  EXPECT_EQ(work->wait(Work::Clock::now()).error().kind, ErrorKind::timed_out);
  world.kill(1);
  EXPECT_EQ(work->wait().error().kind, ErrorKind::lost);
  EXPECT_EQ(mine, Metrics(1));
}

/// Given up at a deadline, the reduction goes on: what it writes into has to live on (address sanitizer).
TEST(BatchAllReduce, MayBeDroppedBeforeItIsDone) {
  SimWorld world(2);
  Ledger ledger[2];
  Progress progress;
  const auto first = world.communicator(0, ledger[0], progress);
  const auto second = world.communicator(1, ledger[1], progress);
  Metrics mine(1), other(2);
  EXPECT_FALSE(batch_all_reduce(*first, mine.buffers(), ReduceOp::sum, "test")->wait(Work::Clock::now()));
  EXPECT_TRUE(batch_all_reduce(*second, other.buffers(), ReduceOp::sum, "test")->wait());
  EXPECT_EQ(mine, Metrics(1));
  EXPECT_EQ(other, Metrics(3));
}

}  // namespace
}  // namespace footplate
