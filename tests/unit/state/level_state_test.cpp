#include "runtime/state/level_state.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/unit/sim_ranks.h"
#include "tests/unit/state/apart.h"

namespace footplate {
namespace {

using test::Apart;

constexpr int kSource = 1;

TEST(LevelState, AllRanksHaveTheStateOfOneAndWhatItHasBesides) {
  constexpr int kRanks = 3;
  test::run_ranks(kRanks, [](int rank, Communicator& communicator, Progress&) {
    Apart memory;
    std::array<float, 3> weights{};
    weights.fill(static_cast<float>(rank));
    std::array<double, 1> moments{10.0 * rank};
    StateTable state;
    state.add({"w", DataType::float32, {3}, Placement::replicated, weights.data(), 12});
    state.add({"m", DataType::float64, {1}, Placement::replicated, moments.data(), 8, &memory});
    const auto theirs = level_state(communicator, state, kSource, {{"rank", rank}});
    ASSERT_TRUE(theirs) << theirs.error().message;
    EXPECT_EQ(*theirs, (Json{{"rank", kSource}}));
    for (const float weight : weights) EXPECT_EQ(weight, kSource);
    EXPECT_EQ(moments[0], 10.0 * kSource);
    EXPECT_EQ(memory.taken, rank == kSource ? 0 : 1);
  });
}

}  // namespace
}  // namespace footplate
