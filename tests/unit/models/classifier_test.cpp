#include "runtime/models/classifier.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

const std::vector<ClassifiedSet> kSets{{.name = "images", .shape = {7, 9}, .classes = 3},
                                       {.name = "table", .shape = {5}, .classes = 2}};

Classifier small(std::uint64_t seed = 1) {
  return Classifier({.width = 6, .channels = 2}, kSets, seed, at::kCPU);
}

TEST(Classifier, AnswersForEachSetWithItsClasses) {
  const at::NoGradGuard no_grad;
  const Classifier model = small();
  EXPECT_EQ(model.logits(0, at::randn({4, 7, 9})).sizes(), at::IntArrayRef({4, 3}));
  EXPECT_EQ(model.logits(1, at::randn({4, 5})).sizes(), at::IntArrayRef({4, 2}));
  const at::Tensor images = at::randn({4, 7, 9});
  EXPECT_TRUE(at::allclose(model.logits(0, images).narrow(0, 2, 1), model.logits(0, images.narrow(0, 2, 1)),
                           1e-4, 1e-6))
      << "each sample alone";
}

TEST(Classifier, SharesTheTrunkAndNothingElse) {
  const Classifier model = small();
  model.logits(1, at::randn({4, 5})).sum().backward();
  for (const Parameter& parameter : model.parameters()) {
    EXPECT_EQ(parameter.tensor.grad().defined(), !parameter.name.starts_with("images.")) << parameter.name;
    EXPECT_EQ(parameter.group, parameter.name.ends_with("head.weight") ? Classifier::kHeads : "")
        << parameter.name;
  }
}

TEST(Classifier, FollowsFromTheSeed) {
  const Classifier model = small(), same = small(), other = small(2);
  for (std::size_t i = 0; i < model.parameters().size(); ++i)
    EXPECT_TRUE(model.parameters()[i].tensor.equal(same.parameters()[i].tensor));
  EXPECT_FALSE(model.parameters()[2].tensor.equal(other.parameters()[2].tensor));
}

TEST(Classifier, CountsWhatItCosts) {
  const Classifier model = small();
  EXPECT_EQ(model.flops_per_sample(1), 6 * (5 * 6 + 2 * 6 * 6 + 6 * 2));
  // 4 x 5 places of the first convolution, 2 x 3 of the second.
  EXPECT_EQ(model.flops_per_sample(0), 6 * (20 * 2 * 25 + 6 * 2 * 4 * 9 + 4 * 6 * 6 + 2 * 6 * 6 + 6 * 3));
}

}  // namespace
}  // namespace footplate
