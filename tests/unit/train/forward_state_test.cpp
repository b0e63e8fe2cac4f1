#include "runtime/train/forward_state.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace footplate {
namespace {

using Floats = std::vector<float>;

/// What a state is after a step that finds it as `before`, on ranks whose forward passes leave `written`.
Floats after_step(const Floats& before, const std::vector<Floats>& written, bool skip = false) {
  struct OnRank {
    at::Tensor values, row;
    ForwardState state;
  };
  std::vector<OnRank> ranks;
  at::Tensor sum;
  for (const Floats& floats : written) {
    const at::Tensor values = at::tensor(before);
    const std::vector<v1::State> states{{"state", values, v1::State::WrittenBy::forward}};
    const at::Tensor row = at::zeros({ForwardState::elements_of(states)});
    OnRank& rank = ranks.emplace_back(OnRank{values, row, ForwardState(states, row)});
    rank.state.keep();
    rank.values.copy_(at::tensor(floats));
    rank.state.publish(true);
    sum = sum.defined() ? sum.add(rank.row) : rank.row.clone();
  }
  for (OnRank& rank : ranks) {
    rank.row.copy_(sum);
    rank.state.conclude(at::tensor(skip ? 1.0F : 0.0F));
  }
  const auto* first = ranks.front().values.const_data_ptr<float>();
  return {first, first + ranks.front().values.numel()};
}

TEST(ForwardState, IsTheMeanOfTheRanksAndWhatItWasAfterASkippedStep) {
  EXPECT_THAT(after_step({0, 0}, {{1, 4}, {3, 8}}), ::testing::ElementsAre(2, 6));
  EXPECT_THAT(after_step({5, 6}, {{1, 4}, {3, 8}}, /*skip=*/true), ::testing::ElementsAre(5, 6));
}

/// Masks are made of such constants.
TEST(ForwardState, AConstantStaysThoughItsSumOverTheRanksIsInfinite) {
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(after_step({kLowest, -kInfinity, 0}, {{kLowest, -kInfinity, 1}, {kLowest, -kInfinity, 3}}),
              ::testing::ElementsAre(kLowest, -kInfinity, 2));
}

}  // namespace
}  // namespace footplate
