#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace footplate {

/// Elements of a piece of logits: 1 GiB of float32, which keeps a device busy for milliseconds.
constexpr std::int64_t kMostLogits = std::int64_t{1} << 28;

/// The sum of the rows' cross-entropies, in nats: of a linear layer's output, `x` [rows, width] times the
/// transposed `weight` [vocabulary, width], with `targets` (int64 [rows]). For language models: the logits
/// are never whole, which would be most of such a model's memory (Wijmans et al. 2024, "Cut your losses in
/// large-vocabulary language models"). One piece of rows after the other has its logits, its losses, and
/// where gradients are on its part of both gradients, which backward only scales. Only the first derivative
/// exists.
///
/// Products are bf16 under autocast. Sums, the softmax and the gradient of `weight` are float32 (double where
/// x is). Rows of a piece are padded, so that each begins where a device reads it fastest. The result's bits
/// depend on the values, the shapes and `most_logits`, the elements of a piece. Throws as LibTorch does. Any
/// thread.
at::Tensor linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                                std::int64_t most_logits = kMostLogits);

/// The same without gradients, and how many of the targets are what the model holds for the likeliest: int64.
struct LossAndHits {
  at::Tensor loss, hits;
};
LossAndHits linear_loss_and_hits(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                                 std::int64_t most_logits = kMostLogits);

}  // namespace footplate
