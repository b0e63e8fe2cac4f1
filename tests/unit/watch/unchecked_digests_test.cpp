#include "runtime/watch/unchecked_digests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::pair<int, std::uint64_t>> taken(UncheckedDigests& digests, std::uint64_t sequence) {
  std::vector<std::pair<int, std::uint64_t>> taken;
  for (const auto& [rank, launched] : digests.take_up_to(sequence))
    taken.emplace_back(rank, launched.sequence);
  return taken;
}

TEST(UncheckedDigestsTest, AreTakenInTheOrderOfTheRanksOnceRankZeroHasComeSoFar) {
  UncheckedDigests digests(5);
  for (const auto& [rank, sequence] : {std::pair(4, 10), {2, 12}, {1, 11}, {3, 10}})
    digests.add(rank, {static_cast<std::uint64_t>(sequence), 0});
  EXPECT_THAT(taken(digests, 9), IsEmpty());
  EXPECT_THAT(taken(digests, 11), ElementsAre(Pair(1, 11), Pair(3, 10), Pair(4, 10)));
  EXPECT_THAT(taken(digests, 11), IsEmpty());
  EXPECT_THAT(taken(digests, 50), ElementsAre(Pair(2, 12)));
}

TEST(UncheckedDigestsTest, TheFirstOfARankStaysUntilItIsTaken) {
  UncheckedDigests digests(2);
  digests.add(1, {10, 0});
  digests.add(1, {11, 0});
  EXPECT_THAT(taken(digests, 20), ElementsAre(Pair(1, 10)));
  digests.add(1, {12, 0});
  EXPECT_THAT(taken(digests, 20), ElementsAre(Pair(1, 12)));
}

}  // namespace
}  // namespace footplate
