#include "runtime/comm/shares.h"

#include <gtest/gtest.h>

#include <vector>

namespace footplate {
namespace {

TEST(Shares, EveryElementIsOneRanksAndSharesAreEqual) {
  for (const int ranks : {1, 2, 3, 4, 7, 8, 64, 1000})
    for (const std::int64_t elements : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{7'000'000}}) {
      const std::int64_t all = padded(elements, ranks);
      EXPECT_GE(all, elements);
      EXPECT_LT(all - elements, kBlockAlign * ranks);
      std::vector<std::int64_t> share(static_cast<std::size_t>(ranks));
      std::int64_t next = 0;
      EXPECT_TRUE(in_stripes(all, ranks, [&](std::int64_t first, std::int64_t block) {
        EXPECT_EQ(first, next) << "stripes leave no gap";
        EXPECT_EQ(block % kBlockAlign, 0);
        next = first + block * ranks;
        for (std::int64_t& one : share) one += block;
        return true;
      }));
      EXPECT_EQ(next, all);
      EXPECT_EQ(share, std::vector(share.size(), all / ranks)) << elements << " among " << ranks;
    }
}

TEST(Shares, AStripeOfManyRanksStaysSmall) {
  EXPECT_EQ(stripe_of(2), 2 * kLargestBlock);
  for (const int ranks : {32, 33, 1000, 16'384}) {
    EXPECT_LE(stripe_of(ranks), kLargestStripe) << ranks;
    EXPECT_GT(stripe_of(ranks), kLargestStripe / 2) << ranks;
  }
  EXPECT_EQ(stripe_of(10'000'000), 10'000'000 * kBlockAlign) << "never nothing";
}

TEST(Shares, AShareAndItsCopyAreOnDifferentHostsWhereTheyCanBe) {
  EXPECT_EQ(distance_of_copies({}), 1) << "one host";
  EXPECT_EQ(distance_of_copies({0, 0, 0}), 1);
  EXPECT_EQ(distance_of_copies({0, 1, 0, 1}), 1);
  EXPECT_EQ(distance_of_copies({0, 0, 1, 1}), 2);
  EXPECT_EQ(distance_of_copies({0, 0, 0, 1, 1, 1, 2, 2, 2}), 3);
  EXPECT_EQ(distance_of_copies({0, 0, 1}), 1) << "two of the three are";
  EXPECT_EQ(rank_after(3, 4, 2), 1);
  EXPECT_EQ(rank_before(1, 4, 2), 3);
  EXPECT_EQ(rank_before(0, 1, 1), 0);
}

TEST(Shares, TheBlocksOfAllRanksAreTheBuffer) {
  const int ranks = 3;
  const std::int64_t all = padded(2 * stripe_of(ranks) + 100, ranks);
  std::vector<Stretch> blocks;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto mine = blocks_of(all, ranks, rank);
    EXPECT_EQ(mine.size(), 3U);
    blocks.insert(blocks.end(), mine.begin(), mine.end());
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const Stretch& a, const Stretch& b) { return a.first < b.first; });
  std::int64_t end = 0;
  for (const Stretch& block : blocks) {
    EXPECT_EQ(block.first, end);
    end = block.end;
  }
  EXPECT_EQ(end, all);
}

TEST(Shares, WithinIsWhatBothHave) {
  const std::vector<Stretch> blocks{{0, 10}, {20, 30}, {40, 50}};
  EXPECT_EQ(within({5, 25}, blocks), (std::vector<Stretch>{{5, 10}, {20, 25}}));
  EXPECT_EQ(within({10, 20}, blocks), std::vector<Stretch>{});
  EXPECT_EQ(within({0, 100}, blocks), blocks);
  EXPECT_EQ(within({22, 24}, blocks), (std::vector<Stretch>{{22, 24}}));
}

TEST(Shares, WhatReturnsFalseIsTheLast) {
  int runs = 0;
  EXPECT_FALSE(in_stripes(10 * stripe_of(2), 2, [&](std::int64_t, std::int64_t) { return ++runs < 3; }));
  EXPECT_EQ(runs, 3);
}

}  // namespace
}  // namespace footplate
