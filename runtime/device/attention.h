#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/messages/enum_words.h"

namespace footplate {

/// Which of LibTorch's kernels attention runs on.
enum class AttentionKernel { automatic, flash, efficient, cudnn, math };
template <>
struct EnumWords<AttentionKernel> {
  static constexpr std::array kAll{std::pair{AttentionKernel::automatic, std::string_view("auto")},
                                   std::pair{AttentionKernel::flash, std::string_view("flash")},
                                   std::pair{AttentionKernel::efficient, std::string_view("efficient")},
                                   std::pair{AttentionKernel::cudnn, std::string_view("cudnn")},
                                   std::pair{AttentionKernel::math, std::string_view("math")}};
};

/// From the next call of scaled_dot_product_attention on, in the whole process: that kernel, or the slow one,
/// math, where it can't do what it is asked. `automatic`: the first that can, of flash, efficient, cudnn and
/// math; an order of its own, since LibTorch's default changes from version to version.
void choose_attention(AttentionKernel kernel);

/// Attention of queries, keys and values [batch, heads, length, width of a head] with a causal mask, by the
/// chosen kernel. On processors bf16 only helps where sequences are long and the processor multiplies it
/// (AMX): else it is in float32 under autocast, too. Differentiable.
at::Tensor causal_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

/// The one that tensors like this one, [batch, heads, length, width of a head], would run on there: "flash",
/// "efficient", "cudnn", "math"; "flash in fp32" where they are bf16 and attention isn't.
std::string attention_kernel(const at::Tensor& like);

}  // namespace footplate
