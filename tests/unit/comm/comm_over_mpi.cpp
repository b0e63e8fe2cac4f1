// The contract of Communicator over MPI: `mpirun -n N comm_over_mpi` runs every test on all ranks at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "runtime/comm/mpi/mpi_communicator.h"
#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/comm/mpi/patience.h"
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

TEST_F(CommOverMpi, TheLargestAndTheSmallestOfSharesAreFound) {
  for (const auto op : {ReduceOp::max, ReduceOp::min}) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(comm_.world_size()) * 3, comm_.rank());
    const Buffer buffer{values.data(), static_cast<std::int64_t>(values.size()), DataType::int64};
    ASSERT_TRUE(comm_.reduce_scatter(buffer, op, "test")->wait());
    ASSERT_TRUE(comm_.all_gather_shares(buffer, "test")->wait());
    EXPECT_THAT(values, ::testing::Each(op == ReduceOp::max ? comm_.world_size() - 1 : 0));
  }
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
