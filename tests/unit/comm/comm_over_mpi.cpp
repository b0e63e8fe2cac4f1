// The contract of Communicator over MPI: `mpirun -n N comm_over_mpi` runs every test on all ranks at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "runtime/comm/mpi/mpi_communicator.h"
#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/comm/mpi/patience.h"
#include "runtime/comm/mpi/two_levels.h"
#include "tests/unit/comm/batch_all_reduce_cases.h"
#include "tests/unit/comm/shares_cases.h"

namespace footplate {
namespace {

MpiSession* g_session = nullptr;

class CommOverMpi : public ::testing::Test {
 protected:
  float ranks() const { return static_cast<float>(comm_.world_size()); }
  /// 1 + … + N.
  float rank_sum() const { return ranks() * (ranks() + 1) / 2; }
  float mine() const { return static_cast<float>(comm_.rank()) + 1; }

  Ledger ledger_;
  Progress progress_;
  MpiCommunicator comm_{*g_session, ledger_, progress_};
};

TEST_F(CommOverMpi, PiecesOfAnySizeGiveTheSameSums) {
  for (const std::int64_t chunk : {1, 7, 100, 1000, 4096, 0}) {
    comm_.set_chunk_elements(chunk);
    for (const std::size_t elements : {0U, 1U, 99U, 100U, 101U, 5000U}) {
      std::vector<float> values(elements, mine());
      const Buffer buffer{values.data(), static_cast<std::int64_t>(elements), DataType::float32};
      ASSERT_TRUE(comm_.all_reduce(buffer, ReduceOp::sum, "test")->wait());
      EXPECT_THAT(values, ::testing::Each(rank_sum())) << elements << " in pieces of " << chunk;
      std::fill(values.begin(), values.end(), mine());
      ASSERT_TRUE(comm_.broadcast(buffer, comm_.world_size() - 1, "test")->wait());
      EXPECT_THAT(values, ::testing::Each(ranks())) << elements << " in pieces of " << chunk;
    }
  }
}

TEST_F(CommOverMpi, OfThisOpenMpiWhatAWaitDoesCanBeReplaced) {
  EXPECT_TRUE(nap_where_yields_take_long());
}

TEST_F(CommOverMpi, BatchesAreSummedByOneReductionForEachType) {
  cases::expect_batches_are_summed(comm_, ledger_);
}

TEST_F(CommOverMpi, SharesAreSummedAndGathered) {
  cases::expect_shares_are_summed_and_gathered(comm_);
}

TEST_F(CommOverMpi, SharesArePassedToTheNextRank) {
  cases::expect_shares_are_passed(comm_);
}

TEST_F(CommOverMpi, TheLargestAndTheSmallestOfSharesAreFound) {
  for (const auto op : {ReduceOp::max, ReduceOp::min}) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(comm_.world_size()) * 3, comm_.rank());
    const Buffer buffer{values.data(), static_cast<std::int64_t>(values.size()), DataType::int64};
    ASSERT_TRUE(comm_.reduce_scatter(buffer, op, "test")->wait());
    ASSERT_TRUE(comm_.all_gather_shares(buffer, "test")->wait());
    EXPECT_THAT(values, ::testing::Each(op == ReduceOp::max ? comm_.world_size() - 1 : 0));
  }
}

/// As if the ranks of this test were on several hosts: each layout of theirs, and buffers of one piece or
/// many.
class TwoLevelsOverMpi : public CommOverMpi {
 protected:
  void on_every_layout(const std::function<void(const TwoLevels&)>& call) {
    const int ranks = comm_.world_size();
    for (const int hosts : {1, 2, 3, ranks}) {
      std::vector<int> apart, together;
      for (int rank = 0; rank < ranks; ++rank) {
        apart.push_back(rank % hosts);
        together.push_back(rank * hosts / ranks);
      }
      for (const auto& layout : {apart, together})
        call({g_session->data(), HostGroups(layout, comm_.rank()),
              [](int) { FAIL() << "an error of MPI's"; }});
    }
  }
};

TEST_F(TwoLevelsOverMpi, SumsAreThoseOfAllRanks) {
  on_every_layout([this](const TwoLevels& levels) {
    for (const std::int64_t elements : {0, 1, 2, 63, 1000, 70'000, 1'500'000}) {
      std::vector<float> values(static_cast<std::size_t>(elements));
      for (std::int64_t i = 0; i < elements; ++i)
        values[static_cast<std::size_t>(i)] = cases::number_of(comm_.rank(), i);
      ASSERT_EQ(levels.all_reduce({values.data(), elements, DataType::float32}, ReduceOp::sum), MPI_SUCCESS);
      ASSERT_EQ(cases::first_that_isnt_summed(values, comm_.world_size(), 0, elements), elements);
    }
  });
}

TEST_F(TwoLevelsOverMpi, TheLargestIsFoundInEveryType) {
  on_every_layout([this](const TwoLevels& levels) {
    std::vector<std::int64_t> large(100'000, comm_.rank());
    ASSERT_EQ(levels.all_reduce({large.data(), 100'000, DataType::int64}, ReduceOp::max), MPI_SUCCESS);
    EXPECT_EQ(std::count(large.begin(), large.end(), comm_.world_size() - 1), 100'000);
    std::vector<double> small(100'000, comm_.rank() + 0.5);
    ASSERT_EQ(levels.all_reduce({small.data(), 100'000, DataType::float64}, ReduceOp::min), MPI_SUCCESS);
    EXPECT_EQ(std::count(small.begin(), small.end(), 0.5), 100'000);
  });
}

TEST_F(TwoLevelsOverMpi, SharesAreSummedAndGathered) {
  on_every_layout([this](const TwoLevels& levels) {
    cases::expect_shares_are_summed_and_gathered(
        comm_.rank(), comm_.world_size(),
        [&](const Buffer& buffer) { return levels.reduce_scatter(buffer, ReduceOp::sum) == MPI_SUCCESS; },
        [&](const Buffer& buffer) { return levels.all_gather_shares(buffer) == MPI_SUCCESS; });
  });
}

/// Numbers whose sum depends on the order in which they are added.
TEST_F(TwoLevelsOverMpi, EveryRankHasTheSameBits) {
  on_every_layout([this](const TwoLevels& levels) {
    std::vector<float> values(200'000);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = std::sin(static_cast<float>(i) * (1.1F + static_cast<float>(comm_.rank())));
    ASSERT_EQ(levels.all_reduce({values.data(), 200'000, DataType::float32}, ReduceOp::sum), MPI_SUCCESS);
    std::vector<float> of_rank_0 = values;
    ASSERT_TRUE(comm_.broadcast({of_rank_0.data(), 200'000, DataType::float32}, 0, "test")->wait());
    EXPECT_EQ(std::memcmp(values.data(), of_rank_0.data(), values.size() * sizeof(float)), 0);
  });
}

TEST_F(CommOverMpi, AGatherPastTheRangeOfAnIntIsRefused) {
  if (comm_.world_size() == 1) GTEST_SKIP() << "alone, nothing reaches MPI";
  const Buffer huge{nullptr, std::int64_t{1} << 31, DataType::uint8};
  const auto outcome = comm_.all_gather(huge, huge, "test")->wait();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, ::testing::HasSubstr("2147483648 elements"));
}

}  // namespace
}  // namespace footplate

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  auto session = footplate::MpiSession::start();
  if (!session) return 1;
  footplate::g_session = session->get();
  if ((*session)->rank() != 0) {  // one report is enough; a failure of any rank is mpirun's exit code
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }
  const int code = RUN_ALL_TESTS();
  (*session)->finish();
  return code;
}
