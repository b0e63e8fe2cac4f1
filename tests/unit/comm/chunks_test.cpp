#include "runtime/comm/chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace footplate {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Le;
using ::testing::Pair;

constexpr std::int64_t kMillion = 1'000'000;

std::int64_t pieces(std::int64_t elements, std::int64_t chosen = 0) {
  std::int64_t count = 0;
  in_chunks(elements, chunk_of(elements, chosen), [&](std::int64_t, std::int64_t) { return ++count > 0; });
  return count;
}

TEST(Chunks, BySizeTheyFollowTheBands) {
  for (const std::int64_t small : {std::int64_t{1}, kMillion, 100 * kMillion - 1})
    EXPECT_EQ(pieces(small), 1);
  for (const std::int64_t middle : {100 * kMillion, 250 * kMillion, 467'019'003L, 500 * kMillion})
    EXPECT_THAT(pieces(middle), AllOf(Ge(2), Le(5))) << middle;
  for (const std::int64_t large : {500 * kMillion + 1, 750 * kMillion, 4'000 * kMillion, 40'000 * kMillion})
    EXPECT_THAT(pieces(large), AllOf(Ge(10), Le(20))) << large;
}

TEST(Chunks, AChosenSizeIsTaken) {
  EXPECT_EQ(chunk_of(10, 3), 3);
  EXPECT_EQ(pieces(10 * kMillion, kMillion), 10);
  EXPECT_EQ(pieces(10 * kMillion + 1, kMillion), 11);
  EXPECT_EQ(pieces(5, kMillion), 1);
}

/// Past what an int can hold nothing wraps: every element is in one piece, none larger than MPI can take.
TEST(Chunks, PastTheRangeOfAnIntEveryElementIsInOnePiece) {
  for (const std::int64_t elements : {(std::int64_t{1} << 31) + 7, 50'000 * kMillion, 100'000 * kMillion})
    for (const std::int64_t chosen : {std::int64_t{0}, std::int64_t{1} << 40, 2'000 * kMillion}) {
      std::int64_t end = 0;
      EXPECT_TRUE(
          in_chunks(elements, chunk_of(elements, chosen), [&](std::int64_t first, std::int64_t count) {
            EXPECT_EQ(first, end);
            EXPECT_THAT(count, AllOf(Ge(1), Le(kLargestChunk)));
            end = first + count;
            return true;
          }));
      EXPECT_EQ(end, elements);
    }
}

TEST(Chunks, NothingHasNoPieces) {
  EXPECT_EQ(pieces(0), 0);
  EXPECT_EQ(pieces(0, 5), 0);
}

TEST(Chunks, TheFirstFailureEndsThem) {
  std::vector<std::pair<std::int64_t, std::int64_t>> run;
  EXPECT_FALSE(in_chunks(10, 4, [&](std::int64_t first, std::int64_t count) {
    run.emplace_back(first, count);
    return first == 0;
  }));
  EXPECT_THAT(run, ElementsAre(Pair(0, 4), Pair(4, 4)));
}

}  // namespace
}  // namespace footplate
