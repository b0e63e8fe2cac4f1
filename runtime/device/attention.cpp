#include "runtime/device/attention.h"

#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/ops/_fused_sdp_choice.h>

namespace footplate {

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

std::string attention_kernel(const at::Tensor& like) {
  const auto chosen =
      static_cast<at::SDPBackend>(at::_fused_sdp_choice(like, like, like, {}, 0.0, /*is_causal=*/true));
  switch (chosen) {
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

}  // namespace footplate
