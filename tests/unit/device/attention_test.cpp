#include "runtime/device/attention.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "runtime/device/host_kernels/instructions.h"
#include "runtime/device/mixed_precision.h"

namespace footplate {
namespace {

struct Heads {
  explicit Heads(std::int64_t length, at::ScalarType type = at::kFloat) {
    at::manual_seed(7);
    for (at::Tensor* one : {&query, &key, &value})
      *one = at::randn({2, 3, length, 8}).to(type).requires_grad_(true);
  }
  at::Tensor plain() const {
    return at::scaled_dot_product_attention(query, key, value, {}, 0.0, /*is_causal=*/true);
  }
  at::Tensor query, key, value;
};

TEST(CausalAttention, IsLibTorchsInFloat32) {
  const Heads heads(16);
  EXPECT_TRUE(at::equal(causal_attention(heads.query, heads.key, heads.value), heads.plain()));
}

TEST(CausalAttention, OfShortSequencesIsInFloat32UnderAutocastToo) {
  const Heads heads(16, at::kBFloat16);
  const MixedPrecision precision(Precision::bf16, at::kCPU);
  const at::Tensor found = causal_attention(heads.query, heads.key, heads.value);
  EXPECT_EQ(found.scalar_type(), at::kFloat);
  EXPECT_EQ(attention_kernel(heads.query), "flash in fp32");
  const at::Tensor gradient = torch::autograd::grad({found.sum()}, {heads.query}).front();
  EXPECT_EQ(gradient.scalar_type(), at::kBFloat16);
  EXPECT_LE((found - heads.plain()).abs().max().item<double>(), 0.03);
}

TEST(CausalAttention, OfLongSequencesIsInBf16WhereTheProcessorMultipliesIt) {
  const MixedPrecision precision(Precision::bf16, at::kCPU);
  for (const std::int64_t length : {512, 1024}) {
    const Heads heads(length, at::kBFloat16);
    const bool in_bf16 = length == 512 ? multiplies_bf16_tiles() : multiplies_bf16();
    EXPECT_EQ(causal_attention(heads.query, heads.key, heads.value).scalar_type(),
              in_bf16 ? at::kBFloat16 : at::kFloat)
        << length;
    EXPECT_EQ(attention_kernel(heads.query), in_bf16 ? "flash" : "flash in fp32") << length;
  }
}

}  // namespace
}  // namespace footplate
