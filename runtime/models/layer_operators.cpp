#include "runtime/models/layer_operators.h"

#include <torch/library.h>

#include <optional>

#include "runtime/device/attention.h"
#include "runtime/device/host_kernels/gelu.h"
#include "runtime/models/linear_cross_entropy.h"

namespace footplate {
namespace {

at::Tensor gelu(const at::Tensor& x) {
  return gelu_tanh(x);
}
at::Tensor cross_entropy(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets) {
  return linear_cross_entropy(x, weight, targets);
}

/// What a layer is made of brings its own derivative.
template <class Function>
torch::CppFunction with_derivative(Function* function) {
  return torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, function);
}

torch::Library registered() {
  torch::Library library(torch::Library::DEF, "footplate", std::nullopt, __FILE__, __LINE__);
  library.def("gelu_tanh(Tensor x) -> Tensor", with_derivative(&gelu));
  library.def("causal_attention(Tensor query, Tensor key, Tensor value) -> Tensor",
              with_derivative(&causal_attention));
  library.def("linear_cross_entropy(Tensor x, Tensor weight, Tensor targets) -> Tensor",
              with_derivative(&cross_entropy));
  return library;
}

}  // namespace

void register_layers() {
  static const torch::Library library = registered();
}

}  // namespace footplate
