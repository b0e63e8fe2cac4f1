#include "runtime/models/gpt.h"

#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <fmt/format.h>

#include <cmath>

#include "runtime/device/attention.h"
#include "runtime/device/host_kernels/gelu.h"
#include "runtime/models/parameter_builder.h"
#include "runtime/models/recompute.h"

namespace footplate {
namespace {

/// GPT-2's deviation of initial weights.
constexpr double kDeviation = 0.02;
/// From here on the loss is computed in pieces of the logits.
constexpr std::int64_t kLargeVocabulary = 4096;

/// The next token at each position, one after the other.
at::Tensor targets_of(const at::Tensor& tokens) {
  return tokens.narrow(1, 1, tokens.size(1) - 1).reshape({-1});
}

/// In float32 on every device, whatever autocast thinks: it sums over thousands of tokens.
at::Tensor loss_of(const at::Tensor& logits, const at::Tensor& targets) {
  return at::cross_entropy_loss(logits.to(at::kFloat), targets, {}, at::Reduction::Sum);
}

}  // namespace

Gpt::Gpt(const GptShape& shape, std::uint64_t seed, at::Device where) : shape_(shape) {
  ParameterBuilder make(seed, where, parameters_);
  const std::int64_t width = shape.width;
  const auto norm = [&](const std::string& name) {
    return Affine{make.filled(name + ".weight", width, 1.0), make.filled(name + ".bias", width, 0.0)};
  };
  const auto linear = [&](const std::string& name, std::int64_t in, std::int64_t out, double deviation) {
    return Affine{make.normal(name + ".weight", {out, in}, deviation), make.filled(name + ".bias", out, 0.0)};
  };
  // Each block adds twice to the residual stream; scaled so that its variance doesn't grow with depth.
  const double into_stream = kDeviation / std::sqrt(2.0 * static_cast<double>(shape.layers));

  embedding_ = make.normal("embedding.weight", {shape.vocabulary, width}, kDeviation);
  positions_ = make.normal("positions.weight", {shape.context, width}, kDeviation);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const std::string name = fmt::format("blocks.{}.", layer);
    Block block;
    block.norm1 = norm(name + "norm1");
    block.qkv = linear(name + "qkv", width, 3 * width, kDeviation);
    block.out = linear(name + "out", width, width, into_stream);
    block.norm2 = norm(name + "norm2");
    block.up = linear(name + "up", width, 4 * width, kDeviation);
    block.down = linear(name + "down", 4 * width, width, into_stream);
    blocks_.push_back(std::move(block));
  }
  final_norm_ = norm("final_norm");
}

at::Tensor Gpt::loss_sum(const at::Tensor& tokens) const {
  const at::Tensor features = features_of(tokens), targets = targets_of(tokens);
  if (in_pieces()) return linear_cross_entropy(features, embedding_, targets);
  return loss_of(at::linear(features, embedding_), targets);
}

LossAndHits Gpt::loss_and_hits(const at::Tensor& tokens) const {
  const at::NoGradGuard no_grad;
  const at::Tensor features = features_of(tokens), targets = targets_of(tokens);
  if (in_pieces()) return linear_loss_and_hits(features, embedding_, targets);
  const at::Tensor logits = at::linear(features, embedding_);
  return {loss_of(logits, targets), logits.argmax(1).eq(targets).sum()};
}

bool Gpt::in_pieces() const {
  return shape_.vocabulary >= kLargeVocabulary;
}

at::Tensor Gpt::features_of(const at::Tensor& tokens) const {
  const std::int64_t length = tokens.size(1) - 1;
  const at::Tensor input = tokens.narrow(1, 0, length);
  at::Tensor x = at::embedding(embedding_, input).add(positions_.narrow(0, 0, length));
  for (const Block& block : blocks_) {
    // Not where gradients are off: an evaluation may be on a thread of its own.
    if (at::GradMode::is_enabled() && recomputes_)
      x = recomputed(x, [this, &block](const at::Tensor& in) { return forward(block, in); });
    else
      x = forward(block, x);
  }
  return at::layer_norm(x, {shape_.width}, final_norm_.weight, final_norm_.bias).view({-1, shape_.width});
}

double Gpt::flops_per_token() const {
  std::int64_t weights = -positions_.numel();
  for (const Parameter& parameter : parameters_) weights += parameter.tensor.numel();
  return 6.0 * static_cast<double>(weights) +
         12.0 * static_cast<double>(shape_.layers * shape_.width * shape_.context);
}

std::string Gpt::attention_kernel(Precision precision) const {
  const auto type = precision == Precision::bf16 ? at::kBFloat16 : at::kFloat;
  const at::Tensor like = at::empty({1, shape_.heads, shape_.context, shape_.width / shape_.heads},
                                    embedding_.options().dtype(type));
  return footplate::attention_kernel(like);
}

at::Tensor Gpt::forward(const Block& block, const at::Tensor& x) const {
  const at::Tensor h =
      x.add(attention(block, at::layer_norm(x, {shape_.width}, block.norm1.weight, block.norm1.bias)));
  const at::Tensor normed = at::layer_norm(h, {shape_.width}, block.norm2.weight, block.norm2.bias);
  const at::Tensor wide = gelu_tanh(at::linear(normed, block.up.weight, block.up.bias));
  return h.add(at::linear(wide, block.down.weight, block.down.bias));
}

at::Tensor Gpt::attention(const Block& block, const at::Tensor& x) const {
  const std::int64_t batch = x.size(0), length = x.size(1), width = shape_.width, heads = shape_.heads;
  const auto qkv = at::linear(x, block.qkv.weight, block.qkv.bias).split(width, 2);
  const auto by_head = [&](const at::Tensor& part) {
    return part.view({batch, length, heads, width / heads}).transpose(1, 2);
  };
  const at::Tensor mixed = causal_attention(by_head(qkv[0]), by_head(qkv[1]), by_head(qkv[2]));
  return at::linear(mixed.transpose(1, 2).reshape({batch, length, width}), block.out.weight, block.out.bias);
}

}  // namespace footplate
