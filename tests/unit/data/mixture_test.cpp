#include "runtime/data/mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace footplate {
namespace {

using testing::ElementsAre;

std::int64_t total_of(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::vector<std::int64_t> counts_of(const StepSamples& step) {
  std::vector<std::int64_t> counts;
  for (const Slice& draws : step.draws) counts.push_back(draws.size());
  return counts;
}

std::vector<std::int64_t> drawn_by(const std::vector<SetPosition>& sets) {
  std::vector<std::int64_t> drawn;
  for (const SetPosition& set : sets) drawn.push_back(set.drawn);
  return drawn;
}

TEST(Mixture, OneSetGivesTheWholeBatch) {
  const StepSamples step = samples_of_step(std::vector<SetPosition>{{96, 0}}, 32, std::vector{0.3});
  EXPECT_THAT(step.draws, ElementsAre(Slice{96, 128}));
  EXPECT_EQ(step.after.front().drawn, 128);
  EXPECT_EQ(step.after.front().credit, 0);
}

TEST(Mixture, EachStepIsFullAndEachSetHasItsShareToLessThanOneSample) {
  const std::vector<double> shares{5, 2, 0.1};
  std::vector<SetPosition> sets(3);
  for (std::int64_t step = 1; step <= 1000; ++step) {
    const StepSamples now = samples_of_step(sets, 7, shares);
    ASSERT_EQ(total_of(counts_of(now)), 7);
    for (std::size_t set = 0; set < 3; ++set) {
      ASSERT_EQ(now.draws[set].first, sets[set].drawn);
      ASSERT_EQ(now.draws[set].last, now.after[set].drawn);
      const double earned = static_cast<double>(7 * step) * shares[set] / 7.1;
      ASSERT_LT(std::abs(static_cast<double>(now.after[set].drawn) - earned), 1) << step << " " << set;
    }
    sets = now.after;
  }
}

TEST(Mixture, SharesAndBatchSizesMayChangeAtEachStep) {
  std::mt19937 random(5);
  std::vector<SetPosition> sets(4);
  std::int64_t drawn = 0;
  for (int step = 0; step < 3000; ++step) {
    std::vector<double> shares(4);
    for (double& share : shares) share = random() % 3 == 0 ? 0 : static_cast<double>(random() % 1000) / 100;
    shares[random() % 4] = 1;
    const auto batch = static_cast<std::int64_t>(1 + random() % 40);
    const StepSamples now = samples_of_step(sets, batch, shares);
    ASSERT_EQ(total_of(counts_of(now)), batch) << step;
    drawn += batch;
    for (std::size_t set = 0; set < 4; ++set) {
      ASSERT_GE(now.draws[set].size(), 0);
      ASSERT_TRUE(shares[set] > 0 || now.draws[set].size() == 0);
      ASSERT_LT(std::abs(now.after[set].credit), 4);
    }
    sets = now.after;
  }
  EXPECT_EQ(total_of(drawn_by(sets)), drawn);
}

TEST(Mixture, ASetThatComesBackGoesOnWhereItWas) {
  std::vector<SetPosition> sets(2);
  sets = samples_of_step(sets, 10, std::vector{1.0, 1.0}).after;
  sets = samples_of_step(sets, 10, std::vector{1.0, 0.0}).after;
  const StepSamples back = samples_of_step(sets, 10, std::vector{1.0, 1.0});
  EXPECT_THAT(back.draws, ElementsAre(Slice{15, 20}, Slice{5, 10}));
}

TEST(Mixture, RanksTakeEachSampleOnceAndAboutAsMany) {
  std::mt19937 random(6);
  for (int round = 0; round < 500; ++round) {
    const int world_size = static_cast<int>(1 + random() % 9);
    std::vector<std::int64_t> counts(1 + random() % 5);
    for (std::int64_t& count : counts) count = static_cast<std::int64_t>(random() % 30);
    std::vector<std::int64_t> ends(counts.size()), totals;
    for (int rank = 0; rank < world_size; ++rank) {
      const auto slices = slices_of(counts, rank, world_size);
      std::int64_t mine = 0;
      for (std::size_t set = 0; set < counts.size(); ++set) {
        ASSERT_EQ(slices[set].first, ends[set]);
        ASSERT_GE(slices[set].size(), counts[set] / world_size);
        ASSERT_LE(slices[set].size(), (counts[set] + world_size - 1) / world_size);
        ends[set] = slices[set].last;
        mine += slices[set].size();
      }
      totals.push_back(mine);
    }
    ASSERT_EQ(ends, counts);
    ASSERT_LE(std::ranges::max(totals) - std::ranges::min(totals), 1);
  }
}

TEST(Mixture, OfOneSetARankTakesWhatItAlwaysDid) {
  for (int world_size = 1; world_size <= 7; ++world_size)
    for (int rank = 0; rank < world_size; ++rank)
      EXPECT_EQ(slices_of(std::vector<std::int64_t>{32}, rank, world_size).front(),
                slice_of(32, rank, world_size));
}

TEST(Mixture, PiecesAreOfOneSetAndNoLargerThanAsked) {
  const StepSamples step{{{100, 107}, {40, 40}, {8, 13}}, {}};
  EXPECT_THAT(draws_of_rank(step, 0, 1, 3, 0),
              ElementsAre(Draws{0, {100, 103}}, Draws{0, {103, 106}}, Draws{0, {106, 107}}, Draws{2, {8, 11}},
                          Draws{2, {11, 13}}));
  EXPECT_THAT(draws_of_rank(step, 0, 1, 0, 1000),
              ElementsAre(Draws{0, {1100, 1107}}, Draws{2, {1008, 1013}}));
}

TEST(Mixture, MostPiecesAreThoseOfTheRankThatHasMost) {
  const StepSamples step{{{100, 107}, {40, 40}, {8, 13}, {0, 2}}, {}};
  for (const std::int64_t most : {0, 1, 2, 3})
    for (int world_size = 1; world_size <= 9; ++world_size) {
      std::size_t pieces = 0;
      for (int rank = 0; rank < world_size; ++rank)
        pieces = std::max(pieces, draws_of_rank(step, rank, world_size, most, 0).size());
      EXPECT_EQ(most_draws(step, world_size, most), pieces) << most << ", " << world_size;
    }
}

TEST(Mixture, SmallSetsAreSpreadWholly) {
  EXPECT_THAT(spread_evenly(90, std::vector<std::int64_t>{1000, 10, 200}), ElementsAre(40, 10, 40));
  EXPECT_THAT(spread_evenly(7, std::vector<std::int64_t>{9, 0, 9}), ElementsAre(3, 0, 4));
  EXPECT_THAT(spread_evenly(18, std::vector<std::int64_t>{9, 0, 9}), ElementsAre(9, 0, 9));
}

}  // namespace
}  // namespace footplate
