#pragma once

// Layers for the models of tasks, faster or smaller than what LibTorch has in their place. They are operators
// that a rank registers with LibTorch, so a plugin still needs no symbol of footplate's. In Python they are
// torch.ops.footplate.gelu_tanh and so on. Each is differentiable once and computes under autocast as
// train.precision says. Outside of a rank they throw c10::Error.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

namespace footplate::v1 {
namespace detail {
/// The operator of that name. Throws c10::Error: this process has none.
template <class Signature>
c10::TypedOperatorHandle<Signature> layer(const char* name) {
  const std::string full = std::string("footplate::") + name;
  return c10::Dispatcher::singleton().findSchemaOrThrow(full.c_str(), "").typed<Signature>();
}
}  // namespace detail

/// GELU in its tanh form, as torch::gelu(x, "tanh"). On processors it takes about a third of the time for
/// float32 and bfloat16, and is more exact for negative x; other tensors go to torch::gelu.
inline at::Tensor gelu_tanh(const at::Tensor& x) {
  static const auto found = detail::layer<at::Tensor(const at::Tensor&)>("gelu_tanh");
  return found.call(x);
}

/// Scaled dot-product attention with a causal mask. Queries, keys and values are [batch, heads, length, width
/// of a head]. train.attention chooses the kernel. On processors short sequences are computed in float32
/// under autocast, too: bf16 would take up to five times as long there.
inline at::Tensor causal_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  static const auto found =
      detail::layer<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>("causal_attention");
  return found.call(query, key, value);
}

/// The sum of the cross-entropies, in nats, of logits = x · weightᵀ: x is [rows, width], weight [classes,
/// width], targets int64 [rows], each a class, from 0 to classes - 1: rows that don't
/// count have to be left out before. The logits exist a piece at a time, which saves most of a language
/// model's memory. Sums, softmax and the gradient of `weight` are float32 or more.
inline at::Tensor linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                       const at::Tensor& targets) {
  static const auto found =
      detail::layer<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>(
          "linear_cross_entropy");
  return found.call(x, weight, targets);
}

}  // namespace footplate::v1
