// The contract of Communicator, on the simulated world: every backend's launch queue and ledger are the same.
#include "runtime/comm/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/thread.h"
#include "runtime/comm/agree.h"
#include "runtime/comm/sim/sim_scheduler.h"
#include "runtime/comm/sim/sim_world.h"
#include "tests/unit/comm/shares_cases.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;

using Body = std::function<void(Communicator&, Ledger&, SimWorld&)>;

void on_threads(int world_size, const Body& body, const SimOptions& options) {
  SimWorld world(world_size, options);
  std::vector<Thread> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.emplace_back("rank", [&, rank] {
      Ledger ledger;
      Progress progress;
      body(*world.communicator(rank, ledger, progress), ledger, world);
    });
  }
  for (auto& rank : ranks) rank.join();
}

/// Runs `body` on one thread for each rank of a simulated world: at the same time, and by turns with some
/// seeds.
void on_ranks(int world_size, const Body& body, SimOptions options = {}) {
  on_threads(world_size, body, options);
  for (options.seed = 1; options.seed <= 20 && !testing::Test::HasFailure(); ++options.seed) {
    SCOPED_TRACE("seed " + std::to_string(options.seed));
    SimScheduler scheduler(options.seed);
    on_threads(world_size, body, options);
  }
}

Buffer buffer_of(std::vector<float>& values) {
  return {values.data(), static_cast<std::int64_t>(values.size()), DataType::float32};
}

TEST(Communicator, AllReduceSumsEveryElementOnEveryRank) {
  on_ranks(3, [](Communicator& comm, Ledger&, SimWorld&) {
    std::vector<float> values{static_cast<float>(comm.rank()), 10.0F * static_cast<float>(comm.rank())};
    ASSERT_TRUE(comm.all_reduce(buffer_of(values), ReduceOp::sum, "test")->wait());
    EXPECT_THAT(values, testing::ElementsAre(3.0F, 30.0F));
  });
}

TEST(Communicator, OperationsRunInTheOrderOfTheirLaunchWhateverTheDelays) {
  on_ranks(3,
           [](Communicator& comm, Ledger&, SimWorld&) {
             constexpr std::size_t kOperations = 50;
             std::vector<std::vector<float>> values(kOperations, std::vector<float>(1));
             std::vector<std::unique_ptr<Work>> works;
             for (std::size_t i = 0; i < kOperations; ++i) {
               values[i][0] = static_cast<float>(i);
               works.push_back(comm.all_reduce(buffer_of(values[i]), ReduceOp::sum, "test"));
             }
             for (auto& work : works) ASSERT_TRUE(work->wait());
             for (std::size_t i = 0; i < kOperations; ++i)
               EXPECT_EQ(values[i][0], 3.0F * static_cast<float>(i));
           },
           {.seed = 7, .max_lateness = std::chrono::microseconds(300)});
}

TEST(Communicator, BroadcastAndAllGatherKeepRankOrder) {
  on_ranks(3, [](Communicator& comm, Ledger&, SimWorld&) {
    std::vector<float> mine{static_cast<float>(comm.rank())}, all(3);
    ASSERT_TRUE(comm.all_gather(buffer_of(mine), buffer_of(all), "test")->wait());
    EXPECT_THAT(all, testing::ElementsAre(0.0F, 1.0F, 2.0F));
    ASSERT_TRUE(comm.broadcast(buffer_of(mine), 2, "test")->wait());
    EXPECT_EQ(mine[0], 2.0F);
    ASSERT_TRUE(comm.barrier("test")->wait());
  });
}

TEST(Communicator, PiecesOfAnySizeGiveTheSameSums) {
  on_ranks(3, [](Communicator& comm, Ledger&, SimWorld&) {
    for (const std::int64_t chunk : {1, 3, 4, 7, 100, 0}) {
      comm.set_chunk_elements(chunk);
      std::vector<float> values(7);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + 1;
      ASSERT_TRUE(comm.all_reduce(buffer_of(values), ReduceOp::sum, "test")->wait());
      EXPECT_THAT(values, testing::ElementsAre(3, 6, 9, 12, 15, 18, 21)) << chunk;
      if (comm.rank() != 1) values.assign(7, 0);
      ASSERT_TRUE(comm.broadcast(buffer_of(values), 1, "test")->wait());
      EXPECT_THAT(values, testing::ElementsAre(3, 6, 9, 12, 15, 18, 21)) << chunk;
      ASSERT_TRUE(comm.all_reduce({}, ReduceOp::sum, "nothing")->wait());
    }
  });
}

TEST(Communicator, SharesAreSummedAndGathered) {
  for (const int ranks : {1, 2, 3})
    on_threads(
        ranks,
        [](Communicator& comm, Ledger&, SimWorld&) { cases::expect_shares_are_summed_and_gathered(comm); },
        {});
}

TEST(Communicator, SharesArePassedToTheNextRank) {
  for (const int ranks : {1, 2, 3, 4})
    on_threads(ranks, [](Communicator& comm, Ledger&, SimWorld&) { cases::expect_shares_are_passed(comm); },
               {});
  on_ranks(3, [](Communicator& comm, Ledger& ledger, SimWorld&) {
    const float mine = 10.0F * static_cast<float>(comm.rank());
    std::vector<float> values{mine, mine + 1, mine + 2}, wanted = values;
    ASSERT_TRUE(comm.pass_shares(buffer_of(values), 1, "copies")->wait());
    const std::size_t before = comm.rank() == 0 ? 2 : static_cast<std::size_t>(comm.rank()) - 1;
    wanted[before] = 11.0F * static_cast<float>(before);
    EXPECT_EQ(values, wanted);
    EXPECT_EQ(ledger.current().kind, Collective::sendrecv);
    EXPECT_EQ(to_string(ledger.current().kind), "sendrecv");
    EXPECT_EQ(ledger.current().elements, 3);
  });
}

TEST(Communicator, ALostRankEndsAPassOfShares) {
  SimWorld world(2);
  Ledger ledger;
  Progress progress;
  auto comm = world.communicator(0, ledger, progress);
  std::vector<float> values{1, 2};
  auto work = comm->pass_shares(buffer_of(values), 1, "copies");
  EXPECT_FALSE(work->done());
  world.kill(1);
  const auto outcome = work->wait();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::lost);
  EXPECT_EQ(outcome.error().message, "rank 0: sendrecv of copies failed: rank 1 has died");
  EXPECT_THAT(values, testing::ElementsAre(1, 2));
}

/// So that no test passes by what another backend happens to leave there.
TEST(Communicator, OfASimulatedReductionOnlyTheOwnShareIsANumber) {
  on_ranks(2, [](Communicator& comm, Ledger&, SimWorld&) {
    std::vector<float> values{1, 2};
    ASSERT_TRUE(comm.reduce_scatter(buffer_of(values), ReduceOp::sum, "test")->wait());
    EXPECT_EQ(values[static_cast<std::size_t>(comm.rank())], comm.rank() == 0 ? 2.0F : 4.0F);
    EXPECT_TRUE(std::isnan(values[static_cast<std::size_t>(1 - comm.rank())]));
  });
}

TEST(Communicator, AGatherOfSharesIsAnotherCallThanAGather) {
  on_ranks(2, [](Communicator& comm, Ledger&, SimWorld&) {
    std::vector<float> values(2), all(4);
    const auto outcome = (comm.rank() == 0 ? comm.all_gather_shares(buffer_of(values), "test")
                                           : comm.all_gather(buffer_of(values), buffer_of(all), "test"))
                             ->wait();
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().message, testing::HasSubstr("ranks out of step"));
  });
}

/// What is under way keeps its pieces: only later operations have the new ones.
TEST(Communicator, ANewChunkSizeIsForTheNextOperation) {
  on_ranks(2, [](Communicator& comm, Ledger&, SimWorld&) {
    std::vector<float> first(9, 1), second(9, 1);
    comm.set_chunk_elements(2);
    auto one = comm.all_reduce(buffer_of(first), ReduceOp::sum, "test");
    comm.set_chunk_elements(5);
    auto two = comm.all_reduce(buffer_of(second), ReduceOp::sum, "test");
    ASSERT_TRUE(one->wait());
    ASSERT_TRUE(two->wait());
    EXPECT_THAT(first, testing::Each(2.0F));
    EXPECT_THAT(second, testing::Each(2.0F));
  });
}

/// Proves that the sim runs in pieces at all: ranks with different ones don't fit.
TEST(Communicator, RanksWithDifferentPiecesAreOutOfStep) {
  on_ranks(2, [](Communicator& comm, Ledger&, SimWorld&) {
    comm.set_chunk_elements(comm.rank() == 0 ? 4 : 5);
    std::vector<float> values(9);
    const auto outcome = comm.all_reduce(buffer_of(values), ReduceOp::sum, "test")->wait();
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().message,
                testing::HasSubstr("all_reduce of 4 elements, rank 1 in all_reduce of 5"));
  });
}

TEST(Communicator, WaitingGivesUpAtItsDeadlineAndTheOperationGoesOn) {
  SimWorld world(2);
  Ledger ledger[2];
  Progress progress;
  auto first = world.communicator(0, ledger[0], progress);
  auto second = world.communicator(1, ledger[1], progress);
  auto work = first->barrier("alone");
  const auto late = work->wait(Work::Clock::now() + milliseconds(20));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::timed_out);
  ASSERT_TRUE(second->barrier("alone")->wait());
  EXPECT_TRUE(work->wait());
}

TEST(Communicator, ErrorsNameRankAndOperationAndStay) {
  SimWorld world(2);
  Ledger ledger;
  Progress progress;
  auto comm = world.communicator(0, ledger, progress);
  auto work = comm->barrier("gradients");
  world.kill(1);
  const auto outcome = work->wait();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "rank 0: barrier of gradients failed: rank 1 has died");
  EXPECT_FALSE(comm->barrier("next")->wait());
}

TEST(Communicator, AgreedReasonsNameTheirRanksOnce) {
  on_ranks(3, [](Communicator& comm, Ledger&, SimWorld&) {
    const bool fails = comm.rank() > 0;
    EXPECT_EQ(*gather_reasons(comm, fails ? "no such file" : ""), "ranks 1, 2: no such file");
    EXPECT_EQ(*gather_reasons(comm, "no such file"), "ranks 0, 1, 2: no such file");
    EXPECT_EQ(*gather_reasons(comm, "ranks 1, 2: no such file"), "ranks 1, 2: no such file");
    EXPECT_EQ(*gather_reasons(comm, fails ? "rank 0 is odd" : ""), "ranks 1, 2: rank 0 is odd");
    EXPECT_EQ(*gather_reasons(comm, ""), "");
  });
}

TEST(Communicator, RanksOutOfStepAreToldWhoCalledWhat) {
  on_ranks(2, [](Communicator& comm, Ledger&, SimWorld&) {
    std::vector<float> values(comm.rank() == 0 ? 4 : 5);
    const auto outcome = comm.all_reduce(buffer_of(values), ReduceOp::sum, "test")->wait();
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().message,
                testing::HasSubstr("all_reduce of 4 elements, rank 1 in all_reduce of 5"));
  });
}

TEST(Communicator, TheLedgerSaysWhatIsRunning) {
  SimWorld world(2);
  Ledger ledger[2];
  Progress progress;
  progress.at_step(812);
  auto first = world.communicator(0, ledger[0], progress);
  auto second = world.communicator(1, ledger[1], progress);
  std::vector<float> mine(3), other(3);
  auto work = first->all_reduce(buffer_of(mine), ReduceOp::sum, "gradients");
  const LedgerEntry running = ledger[0].current();
  EXPECT_EQ(running.sequence, 1u);
  EXPECT_EQ(running.kind, Collective::all_reduce);
  EXPECT_EQ(running.type, DataType::float32);
  EXPECT_STREQ(running.name, "gradients");
  EXPECT_EQ(running.elements, 3);
  EXPECT_EQ(running.step, 812);
  EXPECT_FALSE(running.is_finished());
  ASSERT_TRUE(second->all_reduce(buffer_of(other), ReduceOp::sum, "gradients")->wait());
  ASSERT_TRUE(work->wait());
  EXPECT_GE(ledger[0].current().finished, running.enqueued);
}

}  // namespace
}  // namespace footplate
