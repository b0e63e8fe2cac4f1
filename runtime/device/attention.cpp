#include "runtime/device/attention.h"

#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "runtime/device/host_kernels/instructions.h"
#include "runtime/device/mixed_precision.h"

namespace footplate {
namespace {

// On AMX, forward and backward of the flash kernel take 3.8 times as long in bf16 as in float32 for
// sequences of 128, 1.35 times for 256, 0.85 times for 512 and 0.44 times for 2,048. With AVX-512 on an AMD
// of family 26 they take 1.25 times for 256, as long for 512 and 0.78 times for 1,024 (scripts/bench
// kernels).
constexpr std::int64_t kLongOnTiles = 512, kLong = 1024;

/// Whether queries like these are worth bf16.
bool worth_bf16(const at::Tensor& query) {
  return !query.is_cpu() ||
         (multiplies_bf16() && query.size(2) >= (multiplies_bf16_tiles() ? kLongOnTiles : kLong));
}

const char* name_of(at::SDPBackend kernel) {
  switch (kernel) {
    case at::SDPBackend::flash_attention:
      return "flash";
    case at::SDPBackend::efficient_attention:
      return "efficient";
    case at::SDPBackend::cudnn_attention:
      return "cudnn";
    default:
      return "math";
  }
}

at::Tensor causal(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  return at::scaled_dot_product_attention(query, key, value, {}, /*dropout_p=*/0.0, /*is_causal=*/true);
}

}  // namespace

void choose_attention(AttentionKernel kernel) {
  const bool any = kernel == AttentionKernel::automatic;
  at::Context& context = at::globalContext();
  context.setSDPPriorityOrder({static_cast<std::int64_t>(at::SDPBackend::flash_attention),
                               static_cast<std::int64_t>(at::SDPBackend::efficient_attention),
                               static_cast<std::int64_t>(at::SDPBackend::cudnn_attention),
                               static_cast<std::int64_t>(at::SDPBackend::math)});
  context.setSDPUseFlash(any || kernel == AttentionKernel::flash);
  context.setSDPUseMemEfficient(any || kernel == AttentionKernel::efficient);
  context.setSDPUseCuDNN(any || kernel == AttentionKernel::cudnn);
  context.setSDPUseMath(true);
}

at::Tensor causal_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  if (MixedPrecision::now(query.device()) == Precision::fp32 || worth_bf16(query))
    return causal(query, key, value);
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::autocast_dispatch_keyset);
  return causal(query.to(at::kFloat), key.to(at::kFloat), value.to(at::kFloat));
}

std::string attention_kernel(const at::Tensor& like) {
  const bool in_fp32 = like.scalar_type() == at::kBFloat16 && !worth_bf16(like);
  const at::Tensor used = in_fp32 ? like.to(at::kFloat) : like;
  const auto kernel =
      static_cast<at::SDPBackend>(at::_fused_sdp_choice(used, used, used, {}, 0.0, /*is_causal=*/true));
  return std::string(name_of(kernel)) + (in_fp32 ? " in fp32" : "");
}

}  // namespace footplate
