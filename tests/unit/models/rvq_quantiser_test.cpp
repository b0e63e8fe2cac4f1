#include "runtime/models/rvq_quantiser.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <string>
#include <vector>

#include "runtime/device/mixed_precision.h"

namespace footplate {
namespace {

constexpr QuantiserShape kShape{.codebooks = 3, .codes = 8, .width = 5};
constexpr std::int64_t kVectors = 40;

at::Tensor vectors() {
  return at::randn({kVectors, kShape.width}, at::make_generator<at::CPUGeneratorImpl>(3), at::kFloat);
}

at::Tensor state_of(const RvqQuantiser& quantiser, const std::string& name) {
  for (const v1::State& one : quantiser.state())
    if (one.name == name) return one.tensor;
  ADD_FAILURE() << "no state " << name;
  return {};
}

const at::Tensor kGo = at::zeros({1}), kSkip = at::full({1}, 1.0F);

/// As many steps on the same vectors.
void learn(RvqQuantiser& quantiser, const at::Tensor& from, int steps, const CodebookPace& pace) {
  for (int step = 0; step < steps; ++step)
    quantiser.update(quantiser.use_of(from, quantiser.quantise(from).indexes), kGo, pace);
}

/// The same by loops over single numbers, in double.
struct Plain {
  std::vector<std::vector<double>> left;           ///< of each vector, at last
  std::vector<std::vector<std::int64_t>> indexes;  ///< [vectors][codebooks]
  std::vector<std::vector<double>> counts;         ///< [codebooks][codes]
  std::vector<std::vector<std::vector<double>>> sums;
  double commitment = 0;
};

double square_distance(const std::vector<double>& vector, const at::TensorAccessor<float, 1>& code) {
  double sum = 0;
  for (std::size_t i = 0; i < vector.size(); ++i) {
    const double apart = vector[i] - code[static_cast<std::int64_t>(i)];
    sum += apart * apart;
  }
  return sum;
}

std::int64_t nearest(const std::vector<double>& vector, const at::TensorAccessor<float, 2>& codes) {
  std::int64_t best = 0;
  for (std::int64_t code = 1; code < kShape.codes; ++code)
    if (square_distance(vector, codes[code]) < square_distance(vector, codes[best])) best = code;
  return best;
}

Plain plain(const at::Tensor& from, const at::Tensor& codebooks) {
  const auto all = codebooks.accessor<float, 3>();
  const auto width = static_cast<std::size_t>(kShape.width);
  Plain result;
  result.counts.assign(kShape.codebooks, std::vector<double>(kShape.codes));
  result.sums.assign(kShape.codebooks,
                     std::vector<std::vector<double>>(kShape.codes, std::vector<double>(width)));
  for (std::int64_t row = 0; row < from.size(0); ++row) {
    const float* values = from.const_data_ptr<float>() + row * kShape.width;
    std::vector<double> left(values, values + kShape.width);
    std::vector<std::int64_t> indexes;
    for (std::int64_t book = 0; book < kShape.codebooks; ++book) {
      const std::int64_t code = nearest(left, all[book]);
      const auto b = static_cast<std::size_t>(book), c = static_cast<std::size_t>(code);
      indexes.push_back(code);
      result.counts[b][c] += 1;
      for (std::size_t i = 0; i < width; ++i) {
        result.sums[b][c][i] += left[i];
        left[i] -= all[book][code][static_cast<std::int64_t>(i)];
        result.commitment += left[i] * left[i] / static_cast<double>(kShape.width * kShape.codebooks);
      }
    }
    result.left.push_back(left);
    result.indexes.push_back(indexes);
  }
  return result;
}

TEST(RvqQuantiser, DoesWhatLoopsDo) {
  RvqQuantiser quantiser(kShape, 7, at::kCPU);
  const at::Tensor from = vectors();
  learn(quantiser, from, 3, {});  // codes that differ
  const auto wanted = plain(from, state_of(quantiser, "codes"));
  const auto got = quantiser.quantise(from);
  const auto use = quantiser.use_of(from, got.indexes);
  EXPECT_NEAR(got.commitment.item<double>(), wanted.commitment, 1e-4);
  for (std::int64_t row = 0; row < kVectors; ++row)
    for (std::int64_t i = 0; i < kShape.codebooks; ++i)
      EXPECT_EQ(got.indexes[row][i].item<std::int64_t>(),
                wanted.indexes[static_cast<std::size_t>(row)][static_cast<std::size_t>(i)]);
  for (std::int64_t row = 0; row < kVectors; ++row)
    for (std::int64_t i = 0; i < kShape.width; ++i)
      EXPECT_NEAR((from[row][i] - got.values[row][i]).item<double>(),
                  wanted.left[static_cast<std::size_t>(row)][static_cast<std::size_t>(i)], 1e-5);
  for (std::int64_t b = 0; b < kShape.codebooks; ++b)
    for (std::int64_t c = 0; c < kShape.codes; ++c) {
      EXPECT_EQ(use.counts[b][c].item<double>(),
                wanted.counts[static_cast<std::size_t>(b)][static_cast<std::size_t>(c)]);
      EXPECT_NEAR(use.sums[b][c][0].item<double>(),
                  wanted.sums[static_cast<std::size_t>(b)][static_cast<std::size_t>(c)][0], 1e-4);
    }
  EXPECT_TRUE(at::allclose(quantiser.values_of(got.indexes), got.values, 1e-5, 1e-5));
}

TEST(RvqQuantiser, GradientsGoStraightThroughAndCommitmentPullsVectorsToTheirCodes) {
  RvqQuantiser quantiser(kShape, 7, at::kCPU);
  at::Tensor from = vectors().requires_grad_(true);
  const at::Tensor weights = at::randn({kVectors, kShape.width});
  const auto through = quantiser.quantise(from);
  const auto straight = torch::autograd::grad({(through.values * weights).sum()}, {from})[0];
  EXPECT_TRUE(straight.equal(weights));

  const auto pulled = torch::autograd::grad({quantiser.quantise(from).commitment}, {from})[0];
  at::Tensor wanted = at::zeros_like(pulled), left = from.detach();
  for (std::int64_t book = 0; book < kShape.codebooks; ++book) {
    left = left - state_of(quantiser, "codes")[book].index_select(0, through.indexes.select(1, book));
    wanted = wanted + 2 * left / static_cast<double>(kShape.width * kShape.codebooks);
  }
  EXPECT_TRUE(at::allclose(pulled, wanted, 1e-5, 1e-6));
}

TEST(RvqQuantiser, ACodeBecomesTheRunningMeanOfWhatItStoodFor) {
  RvqQuantiser quantiser(kShape, 7, at::kCPU);
  const CodebookPace pace{.decay = 0.75, .dead_below = 0};
  RvqQuantiser::Use use{at::zeros({kShape.codebooks, kShape.codes}),
                        at::zeros({kShape.codebooks, kShape.codes, kShape.width})};
  const at::Tensor never = state_of(quantiser, "codes")[1][2].clone();
  use.counts[0][2] = 4;
  use.sums[0][2].fill_(8);
  quantiser.update(use, kGo, pace);
  EXPECT_NEAR(state_of(quantiser, "codes")[0][2][0].item<double>(), 2, 1e-3);
  use.counts[0][2] = 8;
  use.sums[0][2].fill_(64);
  quantiser.update(use, kGo, pace);
  // Counts 4 and 8, of means 2 and 8, the first one by 0.75.
  EXPECT_NEAR(state_of(quantiser, "codes")[0][2][0].item<double>(), (0.75 * 8 + 64) / (0.75 * 4 + 8), 1e-3);
  EXPECT_NEAR(state_of(quantiser, "counts")[0][2].item<double>(), (0.75 * 4 + 8) * 0.25, 1e-5);
  EXPECT_TRUE(state_of(quantiser, "codes")[1][2].equal(never));
}

TEST(RvqQuantiser, DeadCodesBecomeHalvesOfThoseThatAreChosenMost) {
  RvqQuantiser quantiser(kShape, 7, at::kCPU);
  RvqQuantiser::Use use{at::zeros({kShape.codebooks, kShape.codes}),
                        at::zeros({kShape.codebooks, kShape.codes, kShape.width})};
  use.counts.fill_(10);
  use.counts[0][3] = 100;
  use.counts[0][5] = 0;
  use.sums.fill_(10);
  use.sums[0][3].fill_(500);
  quantiser.update(use, kGo, {.decay = 0, .dead_below = 0.05});
  const at::Tensor codes = state_of(quantiser, "codes"), counts = state_of(quantiser, "counts");
  EXPECT_EQ(counts[0][3].item<float>(), 50);
  EXPECT_EQ(counts[0][5].item<float>(), 50);
  EXPECT_FALSE(codes[0][3].equal(codes[0][5]));
  EXPECT_TRUE(at::allclose(codes[0][3] + codes[0][5], at::full({kShape.width}, 10.0), 1e-3, 1e-3));
  EXPECT_LT((codes[0][5] - 5).abs().max().item<float>(), 2.5);
  EXPECT_EQ(counts[0].sum().item<float>(), use.counts[0].sum().item<float>());
  EXPECT_TRUE(counts[1].equal(use.counts[1])) << "nothing is dead there";
  EXPECT_LT(quantiser.share_in_use(0.99).item<float>(), 1) << "what was replaced was not chosen";
}

TEST(RvqQuantiser, AllCodesAreInUseAfterAFewSteps) {
  const QuantiserShape shape{.codebooks = 2, .codes = 64, .width = 4};
  RvqQuantiser quantiser(shape, 7, at::kCPU);
  const at::Tensor from = 3 + at::randn({2000, 4}, at::make_generator<at::CPUGeneratorImpl>(3), at::kFloat);
  const double before = quantiser.quantise(from).commitment.item<double>();
  learn(quantiser, from, 30, {});
  const auto use = quantiser.use_of(from, quantiser.quantise(from).indexes);
  EXPECT_GT(use.counts.gt(0).to(at::kFloat).mean().item<double>(), 0.95);
  EXPECT_LT(quantiser.quantise(from).commitment.item<double>(), 0.05 * before);
  EXPECT_GT(quantiser.share_in_use(0.99).item<double>(), 0.95);
  EXPECT_GT(quantiser.perplexity().item<double>(), 32);
}

TEST(RvqQuantiser, AStepThatIsSkippedLeavesAllAsItWasToTheLastBit) {
  RvqQuantiser quantiser(kShape, 7, at::kCPU);
  learn(quantiser, vectors(), 5, {});
  std::vector<at::Tensor> before;
  for (const v1::State& one : quantiser.state()) before.push_back(one.tensor.clone());
  auto use = quantiser.use_of(vectors(), quantiser.quantise(vectors()).indexes);
  use.sums.fill_(std::numeric_limits<float>::quiet_NaN());
  quantiser.update(use, kSkip, {});
  std::size_t i = 0;
  for (const v1::State& one : quantiser.state()) EXPECT_TRUE(one.tensor.equal(before[i++])) << one.name;
  quantiser.update(use, kGo, {});
  EXPECT_FALSE(state_of(quantiser, "codes").equal(before[0])) << "without it, it isn't so";
}

TEST(RvqQuantiser, StaysInFloat32UnderAutocast) {
  RvqQuantiser quantiser(kShape, 7, at::kCPU);
  const at::Tensor from = vectors();
  learn(quantiser, from, 5, {});
  const auto wanted = quantiser.quantise(from);
  const auto use = quantiser.use_of(from, wanted.indexes);
  const MixedPrecision bf16(Precision::bf16, at::kCPU);
  const auto got = quantiser.quantise(from);
  EXPECT_TRUE(got.indexes.equal(wanted.indexes));
  EXPECT_TRUE(got.values.equal(wanted.values));
  EXPECT_TRUE(quantiser.use_of(from, got.indexes).sums.equal(use.sums));
}

TEST(RvqQuantiser, HowTheStatisticsWereAddedUpDoesntMatter) {
  RvqQuantiser whole(kShape, 7, at::kCPU), parts(kShape, 7, at::kCPU);
  const at::Tensor from = vectors();
  for (int step = 0; step < 5; ++step) {
    whole.update(whole.use_of(from, whole.quantise(from).indexes), kGo, {});
    RvqQuantiser::Use sum{at::zeros({kShape.codebooks, kShape.codes}),
                          at::zeros({kShape.codebooks, kShape.codes, kShape.width})};
    for (const at::Tensor& part : from.chunk(3)) {
      const auto use = parts.use_of(part, parts.quantise(part).indexes);
      sum.counts += use.counts;
      sum.sums += use.sums;
    }
    parts.update(sum, kGo, {});
  }
  EXPECT_TRUE(at::allclose(state_of(whole, "codes"), state_of(parts, "codes"), 1e-5, 1e-5));
}

}  // namespace
}  // namespace footplate
