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

TEST(Shares, WhatReturnsFalseIsTheLast) {
  int runs = 0;
  EXPECT_FALSE(in_stripes(10 * stripe_of(2), 2, [&](std::int64_t, std::int64_t) { return ++runs < 3; }));
  EXPECT_EQ(runs, 3);
}

}  // namespace
}  // namespace footplate
