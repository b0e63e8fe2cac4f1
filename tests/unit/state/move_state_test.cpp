#include "runtime/state/move_state.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/unit/sim_ranks.h"
#include "tests/unit/state/apart.h"

namespace footplate {
namespace {

using test::Apart;

StateEntry shard_of(const std::string& name, std::int64_t whole, std::vector<float>& values,
                    std::int64_t first) {
  StateEntry entry{name,
                   DataType::float32,
                   {static_cast<std::int64_t>(values.size())},
                   Placement::sharded,
                   values.data(),
                   values.size() * sizeof(float)};
  entry.shard = ShardOf{{whole}, first};
  return entry;
}

StateEntry whole_of(const std::string& name, std::vector<float>& values) {
  return {name,
          DataType::float32,
          {static_cast<std::int64_t>(values.size())},
          Placement::replicated,
          values.data(),
          values.size() * sizeof(float)};
}

std::vector<float> counted(std::int64_t count, float first) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// Two ranks have halves of 11 elements, of unequal size; a third one has nothing. Now there are thirds.
TEST(MoveState, ShardsAreCutAnew) {
  test::run_ranks(3, [](int rank, Communicator& communicator, Progress&) {
    std::vector<float> had = rank == 0 ? counted(7, 0) : counted(4, 7);
    std::vector<StateEntry> given;
    if (rank < 2) given.push_back(shard_of("b", 11, had, rank == 0 ? 0 : 7));
    const std::int64_t first = std::array{0, 4, 8}.at(static_cast<std::size_t>(rank));
    std::vector<float> wanted(rank == 2 ? 3 : 4, -1);
    ASSERT_TRUE(move_state(communicator, given, {shard_of("b", 11, wanted, first)}));
    EXPECT_EQ(wanted, counted(static_cast<std::int64_t>(wanted.size()), static_cast<float>(first)));
  });
}

/// In place: what a rank gives of a tensor is where it wants all of it. Bits of a float that is no number
/// stay.
TEST(MoveState, WholeTensorsComeFromTheirPiecesBitForBit) {
  test::run_ranks(2, [](int rank, Communicator& communicator, Progress&) {
    Apart memory;
    const std::uint32_t odd = 0xFFC12345;
    std::vector<float> values(6, static_cast<float>(100 + rank));
    if (rank == 1) values[4] = std::bit_cast<float>(odd);
    std::vector<float> mine(values.begin() + 3 * rank, values.begin() + 3 * rank + 3);
    StateEntry piece = shard_of("w", 6, values, 3 * rank);
    piece.data = values.data() + 3 * rank;
    piece.bytes = 3 * sizeof(float);
    piece.shape = {3};
    StateEntry whole = whole_of("w", values);
    piece.memory = whole.memory = &memory;
    ASSERT_TRUE(move_state(communicator, {piece}, {whole}));
    EXPECT_EQ(values[0], 100);
    EXPECT_EQ(values[5], 101);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(values[4]), odd);
  });
}

/// Tensors of one byte, of none, and of more than travels at once; several wanted entries of one tensor.
TEST(MoveState, TensorsOfAnySize) {
  test::run_ranks(2, [](int rank, Communicator& communicator, Progress&) {
    constexpr std::int64_t kLarge = 5'000'001;
    std::vector<float> large = counted(rank == 0 ? kLarge : 0, 0), none;
    std::uint8_t byte = rank == 1 ? 7 : 0;
    std::vector<StateEntry> given;
    if (rank == 0) given.push_back(whole_of("large", large));
    StateEntry small{"byte", DataType::uint8, {}, Placement::replicated, &byte, 1};
    if (rank == 1) given.push_back(small);
    std::vector<float> front(1'000'000, -1), back(static_cast<std::size_t>(kLarge - 4'999'000), -1);
    const std::vector<StateEntry> wanted{small, shard_of("none", 0, none, 0),
                                         shard_of("large", kLarge, front, 0),
                                         shard_of("large", kLarge, back, 4'999'000)};
    ASSERT_TRUE(move_state(communicator, given, wanted));
    EXPECT_EQ(byte, 7);
    EXPECT_EQ(front, counted(1'000'000, 0));
    EXPECT_EQ(back, counted(kLarge - 4'999'000, 4'999'000));
  });
}

}  // namespace
}  // namespace footplate
