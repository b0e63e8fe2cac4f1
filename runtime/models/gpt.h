#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/device/mixed_precision.h"
#include "runtime/models/linear_cross_entropy.h"
#include "runtime/models/parameter.h"

namespace footplate {

struct GptShape {
  std::int64_t layers = 4;
  std::int64_t heads = 4;  ///< divides width
  std::int64_t width = 128;
  std::int64_t context = 128;     ///< longest sequence, in bytes
  std::int64_t vocabulary = 256;  ///< a byte is a token; more only make the output as wide as another model's
};

/// A language model over bytes: GPT-2's architecture (Radford et al. 2019) with pre-normalised blocks,
/// learned positions, tanh GELU, and one matrix for embedding and output. It has no state besides its
/// parameters: nothing differs between training and evaluation.
class Gpt {
 public:
  /// Initial parameters are a function of `seed`, drawn on the host from a generator of their own.
  Gpt(const GptShape& shape, std::uint64_t seed, at::Device where);

  /// In the order of the forward pass.
  const std::vector<Parameter>& parameters() const { return parameters_; }

  /// `tokens`: int64 [batch, length + 1], length <= context. The sum over all batch * length positions
  /// of the cross-entropy of the next byte, in nats. Differentiable where gradients are on.
  at::Tensor loss_sum(const at::Tensor& tokens) const;

  /// The same without gradients, and how many of the next bytes are the ones that it holds for the likeliest.
  LossAndHits loss_and_hits(const at::Tensor& tokens) const;

  /// Whether backward computes each block once more instead of keeping what it has computed (recompute.h).
  void recompute(bool on) { recomputes_ = on; }

  /// Of forward and backward, at full length: 6 for each parameter but the positions, and 12 * layers * width
  /// * context for attention (Chowdhery et al. 2022, appendix B).
  double flops_per_token() const;

  /// What attention runs on in that precision (runtime/device/attention.h).
  std::string attention_kernel(Precision precision) const;

 private:
  struct Affine {
    at::Tensor weight, bias;
  };
  struct Block {
    Affine norm1, qkv, out, norm2, up, down;
  };

  /// Of each position, one after the other: [batch * length, width].
  at::Tensor features_of(const at::Tensor& tokens) const;
  /// Whether logits of all positions would be most of the memory that a step needs.
  bool in_pieces() const;
  at::Tensor forward(const Block& block, const at::Tensor& x) const;
  at::Tensor attention(const Block& block, const at::Tensor& x) const;

  GptShape shape_;
  bool recomputes_ = false;
  at::Tensor embedding_, positions_;
  std::vector<Block> blocks_;
  Affine final_norm_;
  std::vector<Parameter> parameters_;
};

}  // namespace footplate
