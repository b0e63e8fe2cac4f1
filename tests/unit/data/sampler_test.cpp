#include "runtime/data/sampler.h"

#include <gtest/gtest.h>

#include <vector>

namespace footplate {
namespace {

TEST(Sampler, SlicesCoverTheGlobalBatchOnceOnAnyNumberOfRanks) {
  for (const std::int64_t total : {0, 1, 3, 32, 33}) {
    for (int world = 1; world <= 40; ++world) {
      std::int64_t next = 0;
      for (int rank = 0; rank < world; ++rank) {
        const Slice slice = slice_of(total, rank, world);
        EXPECT_EQ(slice.first, next);
        EXPECT_GE(slice.size(), total / world);
        EXPECT_LE(slice.size(), total / world + 1);
        next = slice.last;
      }
      EXPECT_EQ(next, total);
    }
  }
}

TEST(Sampler, OffsetsAreAFunctionOfSeedAndSample) {
  EXPECT_EQ(sample_offset(1, 5, 1000), sample_offset(1, 5, 1000));
  int equal = 0;
  for (std::int64_t sample = 0; sample < 1000; ++sample)
    equal += sample_offset(1, sample, 1000000) == sample_offset(2, sample, 1000000) ? 1 : 0;
  EXPECT_LE(equal, 2);
}

TEST(Sampler, AnEpochHasEverySampleOnceInAnOrderOfItsOwn) {
  for (const std::int64_t size : {1, 2, 3, 5, 16, 17, 1000}) {
    std::vector<std::vector<std::int64_t>> epochs;
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<std::int64_t> order;
      for (std::int64_t i = 0; i < size; ++i) order.push_back(shuffled_index(7, epoch * size + i, size));
      epochs.push_back(order);
      std::sort(order.begin(), order.end());
      for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i) << size;
    }
    if (size < 16) continue;
    EXPECT_NE(epochs[0], epochs[1]);
    EXPECT_NE(epochs[1], epochs[2]);
    EXPECT_NE(shuffled_index(7, 0, size) * size + shuffled_index(7, 1, size),
              shuffled_index(8, 0, size) * size + shuffled_index(8, 1, size));
  }
}

TEST(Sampler, NeighboursInAnEpochAreSpread) {
  constexpr std::int64_t kSize = 10000;
  std::int64_t near = 0;
  for (std::int64_t draw = 1; draw < kSize; ++draw)
    near += std::abs(shuffled_index(1, draw, kSize) - shuffled_index(1, draw - 1, kSize)) < 100 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(near), 199, 60);  // of two numbers at random: 2 * 100 / 10000
}

TEST(Sampler, OffsetsSpreadEvenly) {
  constexpr std::int64_t kPositions = 10;
  std::vector<int> drawn(kPositions);
  for (std::int64_t sample = 0; sample < 100000; ++sample) {
    const std::int64_t offset = sample_offset(3, sample, kPositions);
    ASSERT_GE(offset, 0);
    ASSERT_LT(offset, kPositions);
    ++drawn[static_cast<std::size_t>(offset)];
  }
  for (const int count : drawn) EXPECT_NEAR(count, 10000, 500);  // five standard deviations
}

}  // namespace
}  // namespace footplate
