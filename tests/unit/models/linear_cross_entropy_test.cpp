#include "runtime/models/linear_cross_entropy.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>

#include "runtime/device/mixed_precision.h"

namespace footplate {
namespace {

struct Case {
  std::int64_t rows, width, vocabulary, most_logits;
};

/// 67 classes are padded to 128; pieces of 3 rows leave one of 1, of 1 row each alone.
constexpr Case kCases[] = {{10, 8, 67, 3 * 128}, {10, 8, 67, 1}, {10, 8, 128, 1 << 20}, {1, 4, 2, 1}};

struct Values {
  explicit Values(const Case& of, at::ScalarType type = at::kDouble)
      : x((at::manual_seed(7), at::randn({of.rows, of.width}, type))),
        weight(at::randn({of.vocabulary, of.width}, type)),
        targets(at::randint(of.vocabulary, {of.rows}, at::kLong)) {
    x.requires_grad_(true);
    weight.requires_grad_(true);
  }
  at::Tensor whole() const {
    return at::cross_entropy_loss(at::linear(x, weight), targets, {}, at::Reduction::Sum);
  }
  at::Tensor x, weight, targets;
};

/// By how much they differ, relative to the largest of `wanted`.
double apart(const at::Tensor& found, const at::Tensor& wanted) {
  return (found.to(at::kDouble) - wanted.to(at::kDouble)).abs().max().item<double>() /
         wanted.abs().max().item<double>();
}

std::vector<at::Tensor> gradients(const at::Tensor& loss, const Values& values) {
  return torch::autograd::grad({loss * 0.25}, {values.x, values.weight});
}

TEST(LinearCrossEntropy, IsTheOneOfTheWholeLogitsWithItsGradients) {
  for (const Case& one : kCases) {
    const Values values(one);
    const at::Tensor wanted = values.whole();
    const at::Tensor found = linear_cross_entropy(values.x, values.weight, values.targets, one.most_logits);
    EXPECT_LT(apart(found, wanted), 1e-12) << one.rows;
    const auto of_found = gradients(found, values), of_wanted = gradients(wanted, values);
    EXPECT_LT(apart(of_found[0], of_wanted[0]), 1e-12) << one.vocabulary << " " << one.most_logits;
    EXPECT_LT(apart(of_found[1], of_wanted[1]), 1e-12) << one.vocabulary << " " << one.most_logits;
  }
}

TEST(LinearCrossEntropy, CountsTargetsThatAreTheLikeliest) {
  for (const Case& one : kCases) {
    const Values values(one, at::kFloat);
    const at::NoGradGuard no_grad;
    const auto found = linear_loss_and_hits(values.x, values.weight, values.targets, one.most_logits);
    const at::Tensor hits = at::linear(values.x, values.weight).argmax(1).eq(values.targets).sum();
    EXPECT_TRUE(at::equal(found.hits, hits)) << found.hits << hits;
    EXPECT_LT(apart(found.loss, values.whole()), 1e-5);
    EXPECT_TRUE(
        at::equal(found.loss, linear_cross_entropy(values.x, values.weight, values.targets, one.most_logits)))
        << "the loss without gradients is another";
  }
}

TEST(LinearCrossEntropy, UnderAutocastOnlyItsProductsAreBf16) {
  const Values values(kCases[0], at::kFloat);
  const at::Tensor wanted = values.whole();
  const auto of_wanted = gradients(wanted, values);
  const MixedPrecision precision(Precision::bf16, at::kCPU);
  const at::Tensor found = linear_cross_entropy(values.x, values.weight, values.targets, 3 * 128);
  EXPECT_EQ(found.scalar_type(), at::kFloat);
  EXPECT_LT(apart(found, wanted), 1e-2);
  EXPECT_GT(apart(found, wanted), 1e-6) << "products are float32";
  const auto of_found = gradients(found, values);
  EXPECT_EQ(of_found[1].scalar_type(), at::kFloat);
  for (std::size_t i = 0; i < of_found.size(); ++i) {
    EXPECT_LT(apart(of_found[i], of_wanted[i]), 2e-2) << i;
    EXPECT_GT(apart(of_found[i], of_wanted[i]), 1e-4) << i << ": products are float32";
  }
}

/// In bf16 a probability of 0.999 is 1, and the gradient there would be 0.
TEST(LinearCrossEntropy, ASmallGradientOfASureTargetIsKept) {
  const at::Tensor x = at::ones({1, 1}), weight = at::tensor({7.0F, 0.0F}).unsqueeze(1).requires_grad_(true);
  const MixedPrecision precision(Precision::bf16, at::kCPU);
  const at::Tensor loss = linear_cross_entropy(x, weight, at::zeros({1}, at::kLong));
  const at::Tensor gradient = torch::autograd::grad({loss}, {weight})[0];
  const double wanted = std::expm1(-std::log1p(std::exp(-7.0)));
  EXPECT_NEAR(gradient[0][0].item<double>(), wanted, 1e-2 * std::abs(wanted));
}

TEST(LinearCrossEntropy, ALossThatIsNotFiniteStaysSo) {
  Values values(kCases[0], at::kFloat);
  {
    const at::NoGradGuard no_grad;
    values.x[4][2] = std::numeric_limits<float>::quiet_NaN();
  }
  const at::Tensor found = linear_cross_entropy(values.x, values.weight, values.targets, 3 * 128);
  EXPECT_TRUE(found.isnan().item<bool>());
  EXPECT_TRUE(gradients(found, values)[1].isnan().any().item<bool>());
}

}  // namespace
}  // namespace footplate
