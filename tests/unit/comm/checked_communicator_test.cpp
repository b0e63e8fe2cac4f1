#include "runtime/comm/checked_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "runtime/comm/sim/sim_world.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 3;

/// Of one rank, checks on; `spoil`: rank 2 sees other results than it has.
class CheckedRank {
 public:
  CheckedRank(SimWorld& world, int rank)
      : rank_(rank),
        inner_(world.communicator(rank, ledger_, progress_)),
        checked_(*inner_, *inner_, progress_, [this](const Buffer& buffer) { return hash(buffer); }) {
    checked_.set_checks(true);
  }

  int rank() const { return rank_; }
  Communicator& communicator() { return checked_; }
  std::uint64_t launched() const { return ledger_.newest(); }
  void begin_step(std::int64_t step) { progress_.at_step(step); }
  void spoil() { spoiled_ = rank_ == 2; }

  Result<void> sum(std::int64_t elements, const char* name = "gradients") {
    values_.assign(static_cast<std::size_t>(elements), 1.0F + static_cast<float>(rank_));
    return checked_.all_reduce({values_.data(), elements, DataType::float32}, ReduceOp::sum, name)->wait();
  }
  /// Reduced and gathered as shares.
  Result<void> sum_by_shares(std::int64_t elements) {
    values_.assign(static_cast<std::size_t>(elements), 1.0F + static_cast<float>(rank_));
    const Buffer buffer{values_.data(), elements, DataType::float32};
    if (auto scattered = checked_.reduce_scatter(buffer, ReduceOp::sum, "gradients")->wait(); !scattered)
      return scattered;
    return checked_.all_gather_shares(buffer, "parameters")->wait();
  }
  Result<void> pass(std::int64_t elements) {
    values_.assign(static_cast<std::size_t>(elements), 1.0F + static_cast<float>(rank_));
    return checked_.pass_shares({values_.data(), elements, DataType::float32}, 1, "copies")->wait();
  }
  const std::vector<float>& values() const { return values_; }

 private:
  std::uint64_t hash(const Buffer& buffer) const {
    std::uint64_t sum = spoiled_ ? 1 : 0;
    for (const float value : std::span(static_cast<const float*>(buffer.data), values_.size()))
      sum += static_cast<std::uint64_t>(value);
    return sum;
  }

  const int rank_;
  bool spoiled_ = false;
  Ledger ledger_;
  Progress progress_;
  std::unique_ptr<Communicator> inner_;
  CheckedCommunicator checked_;
  std::vector<float> values_;
};

/// On every rank at once.
void on_all(const std::function<void(CheckedRank&)>& body) {
  SimWorld world(kRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&world, &body, rank] {
      CheckedRank one(world, rank);
      body(one);
    });
  for (auto& rank : ranks) rank.join();
}

TEST(CheckedCommunicator, LetsThroughWhatAllCallAlike) {
  on_all([](CheckedRank& rank) {
    ASSERT_TRUE(rank.sum(5));
    EXPECT_EQ(rank.values(), std::vector<float>(5, 6.0F));
    EXPECT_EQ(rank.launched(), 3U) << "what is called, the sum, its hashes";
    ASSERT_TRUE(rank.communicator().barrier("end")->wait());
    EXPECT_EQ(rank.launched(), 5U) << "a barrier has no result";
  });
}

TEST(CheckedCommunicator, ComparesSharesOnceTheyAreGathered) {
  on_all([](CheckedRank& rank) {
    ASSERT_TRUE(rank.sum_by_shares(6));
    EXPECT_EQ(rank.values(), std::vector<float>(6, 6.0F));
    EXPECT_EQ(rank.launched(), 5U) << "two calls, what they are, the hashes of one";
    rank.spoil();
    const auto summed = rank.sum_by_shares(6);
    ASSERT_FALSE(summed);
    EXPECT_THAT(summed.error().message,
                HasSubstr("different results of step 0, parameters: all_gather of 6"));
  });
}

TEST(CheckedCommunicator, OfAPassOfSharesTheCallIsComparedAlone) {
  on_all([](CheckedRank& rank) {
    ASSERT_TRUE(rank.pass(3));
    const auto before = static_cast<std::size_t>((rank.rank() + 2) % kRanks);
    std::vector<float> wanted(3, 1.0F + static_cast<float>(rank.rank()));
    wanted[before] = 1.0F + static_cast<float>(before);
    EXPECT_EQ(rank.values(), wanted);
    EXPECT_EQ(rank.launched(), 2U) << "what is called, and the call: every rank has its own result";
    const auto passed = rank.pass(rank.rank() == 1 ? 6 : 3);
    ASSERT_FALSE(passed);
    EXPECT_THAT(passed.error().message, HasSubstr("rank 0: step 0, copies: sendrecv of 3 float32; "
                                                  "rank 1: step 0, copies: sendrecv of 6 float32"));
  });
}

TEST(CheckedCommunicator, CostsNothingWhileItIsOff) {
  on_all([](CheckedRank& rank) {
    rank.communicator().set_checks(false);
    ASSERT_TRUE(rank.sum(5));
    EXPECT_EQ(rank.launched(), 1U);
  });
}

TEST(CheckedCommunicator, NamesWhoCallsWhatWhereSizesDiffer) {
  on_all([](CheckedRank& rank) {
    const auto summed = rank.sum(rank.rank() == 1 ? 7 : 5);
    ASSERT_FALSE(summed);
    EXPECT_EQ(
        summed.error().message,
        "debug.collectives: the ranks call different operations: rank 0: step 0, gradients: all_reduce of "
        "5 float32; rank 1: step 0, gradients: all_reduce of 7 float32");
    EXPECT_EQ(rank.launched(), 1U) << "neither is launched";
    EXPECT_TRUE(rank.sum(5)) << "the ranks are together still";
  });
}

TEST(CheckedCommunicator, NamesWhoCallsWhatWhereKindsDiffer) {
  on_all([](CheckedRank& rank) {
    float value = 0;
    const Buffer buffer{&value, 1, DataType::float32};
    const auto done = rank.rank() == 0 ? rank.communicator().broadcast(buffer, 2, "seed")->wait()
                                       : rank.communicator().barrier("end")->wait();
    ASSERT_FALSE(done);
    EXPECT_THAT(
        done.error().message,
        HasSubstr("rank 0: step 0, seed: broadcast of 1 float32 from rank 2; rank 1: step 0, end: barrier"));
  });
}

TEST(CheckedCommunicator, NamesWhoIsInWhichStep) {
  on_all([](CheckedRank& rank) {
    rank.begin_step(rank.rank() == 2 ? 8 : 7);
    const auto summed = rank.sum(5);
    ASSERT_FALSE(summed);
    EXPECT_THAT(summed.error().message,
                HasSubstr("rank 0: step 7, gradients: all_reduce of 5 float32; rank 2: step 8, "));
  });
}

TEST(CheckedCommunicator, NamesWhoGotWhatWhereResultsDiffer) {
  on_all([](CheckedRank& rank) {
    rank.spoil();
    const auto summed = rank.sum(2);
    ASSERT_FALSE(summed);
    EXPECT_THAT(
        summed.error().message,
        HasSubstr("the ranks have different results of step 0, gradients: all_reduce of 2 float32; by "
                  "their hashes, rank 0: 000000000000000c; rank 2: 000000000000000d"));
  });
}

}  // namespace
}  // namespace footplate
