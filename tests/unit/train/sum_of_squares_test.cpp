#include "runtime/train/sum_of_squares.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace footplate {
namespace {

TEST(SumOfSquares, IsRightOfAnyNumberOfElements) {
  for (const std::int64_t elements : {0, 1, 4095, 4096, 4097, 3 * 4096, 100'003})
    EXPECT_NEAR(sum_of_squares(at::full({elements}, 2.0, at::kFloat)).item<double>(),
                4.0 * static_cast<double>(elements), 1e-6 * static_cast<double>(elements));
}

/// LibTorch's norm of so many is off by more than 1e-3 here.
TEST(SumOfSquares, OfManyElementsNoneIsLost) {
  constexpr std::int64_t kMany = 40'000'000;
  const double squares = sum_of_squares(at::full({kMany}, 0.1, at::kFloat)).item<double>();
  EXPECT_NEAR(squares / (kMany * 0.1 * 0.1), 1, 1e-5);
}

TEST(SumOfSquares, WhatIsntFiniteShows) {
  at::Tensor floats = at::full({10'000}, 1.0, at::kFloat);
  for (const std::int64_t place : {5, 9'999}) {
    floats[place] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(sum_of_squares(floats).item<double>())) << place;
    floats[place] = 1;
  }
}

}  // namespace
}  // namespace footplate
