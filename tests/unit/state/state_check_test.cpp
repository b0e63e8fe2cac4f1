// Ranks that begin with different parameters.
#include "runtime/state/state_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "tests/unit/sim_ranks.h"

namespace footplate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Weights {
  std::array<float, 2> first{1, 1}, second{2, 2};
  const char* name = "model/b";

  StateTable table() {
    StateTable table;
    table.add({"model/a", DataType::float32, {2}, Placement::replicated, first.data(), 8});
    table.add({name, DataType::float32, {2}, Placement::replicated, second.data(), 8});
    return table;
  }
};

/// What each of four ranks is told, where `change` makes their weights.
std::vector<Result<void>> compare(const std::function<void(int rank, Weights&)>& change) {
  constexpr int kRanks = 4;
  std::vector<Result<void>> results(kRanks);
  test::run_ranks(kRanks, [&](int rank, Communicator& communicator, Progress&) {
    Weights weights;
    change(rank, weights);
    results[static_cast<std::size_t>(rank)] = same_state(communicator, weights.table());
  });
  return results;
}

TEST(StateCheck, RanksWithTheSameParametersAgree) {
  for (const auto& same : compare([](int, Weights&) {})) EXPECT_TRUE(same);
}

TEST(StateCheck, RanksWithOthersAreNamedOnAllWithTheFirstTensor) {
  const auto results = compare([](int rank, Weights& weights) {
    if (rank == 1 || rank == 2) weights.second[1] += 1;
    if (rank == 3) weights.first[0] = -0.0F;
  });
  for (const auto& same : results) {
    ASSERT_FALSE(same);
    EXPECT_EQ(same.error().kind, ErrorKind::usage);
    EXPECT_THAT(same.error().message,
                AllOf(HasSubstr("rank 0: ranks 1, 2: model/b; rank 3: model/a. "), HasSubstr("host.seed()")));
  }
}

TEST(StateCheck, RanksWithOtherTensorsAreNamed) {
  const auto results = compare([](int rank, Weights& weights) {
    if (rank == 2) weights.name = "model/c";
  });
  for (const auto& same : results)
    EXPECT_THAT(same ? "" : same.error().message, HasSubstr("rank 2: model/c in place of model/b. "));
}

}  // namespace
}  // namespace footplate
