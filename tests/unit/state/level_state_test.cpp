#include "runtime/state/level_state.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/unit/sim_ranks.h"

namespace footplate {
namespace {

/// A device's memory: the host reaches it by copies alone.
struct Apart final : StateMemory {
  void copy_out(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    ++taken;
    std::memcpy(to, from, bytes);
  }
  int taken = 0;
};

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
