#include "runtime/models/rvq_codec.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace footplate {
namespace {

TEST(RvqCodec, HasAVectorForEverySixteenSamplesAndGivesAsManyBack) {
  const at::NoGradGuard no_grad;
  const RvqCodec codec({.width = 6, .vector_width = 5}, 1, at::kCPU);
  for (const std::int64_t length : {16, 64, 1024}) {
    const at::Tensor audio = at::randn({3, length});
    const at::Tensor vectors = codec.encode(audio);
    EXPECT_EQ(vectors.sizes(), at::IntArrayRef({3 * length / RvqCodec::kStride, 5})) << length;
    EXPECT_EQ(codec.decode(vectors, 3).sizes(), audio.sizes()) << length;
  }
}

TEST(RvqCodec, TreatsEachRowAlone) {
  const at::NoGradGuard no_grad;
  const RvqCodec codec({.width = 6, .vector_width = 5}, 1, at::kCPU);
  const at::Tensor audio = at::randn({3, 64});
  const at::Tensor alone = codec.decode(codec.encode(audio.narrow(0, 1, 1)), 1);
  EXPECT_TRUE(at::allclose(codec.decode(codec.encode(audio), 3).narrow(0, 1, 1), alone, 1e-4, 1e-6));
}

TEST(RvqCodec, BeginsWithSilenceAndFollowsFromTheSeed) {
  const at::NoGradGuard no_grad;
  const RvqCodec codec({}, 1, at::kCPU), same({}, 1, at::kCPU), other({}, 2, at::kCPU);
  const at::Tensor audio = at::randn({2, 256});
  EXPECT_LT(codec.decode(codec.encode(audio), 2).square().mean().item<double>(), 0.01);
  for (std::size_t i = 0; i < codec.parameters().size(); ++i)
    EXPECT_TRUE(codec.parameters()[i].tensor.equal(same.parameters()[i].tensor));
  EXPECT_FALSE(codec.parameters()[0].tensor.equal(other.parameters()[0].tensor));
}

TEST(RvqCodec, CountsWhatItCosts) {
  const RvqCodec codec({.width = 2, .vector_width = 3}, 1, at::kCPU);
  // Products of a sample, layer by layer, there and back again.
  const double at_a_quarter = 8 * 2 + (2 * 2 * 3 + 2 * 2),
               at_a_sixteenth = 2 * 4 * 8 + (4 * 4 * 3 + 4 * 4) + 4 * 3 * 3;
  EXPECT_NEAR(codec.flops_per_sample(), 6 * 2 * (at_a_quarter / 4 + at_a_sixteenth / 16), 1e-9);
}

}  // namespace
}  // namespace footplate
