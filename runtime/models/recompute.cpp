#include "runtime/models/recompute.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <utility>

#include "runtime/device/mixed_precision.h"

namespace footplate {
namespace {

using Body = std::function<at::Tensor(const at::Tensor&)>;

/// What backward needs besides x.
struct Again : torch::CustomClassHolder {
  Again(Body what, Precision its_precision) : body(std::move(what)), precision(its_precision) {}
  Body body;
  Precision precision;
};

constexpr auto kAgain = "again";

/// Without a graph in forward; backward makes the part of it that it needs, and goes through that.
struct Recomputed : torch::autograd::Function<Recomputed> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            c10::intrusive_ptr<Again> again) {
    context->save_for_backward({x});
    at::Tensor y = again->body(x);
    context->saved_data[kAgain] = c10::IValue::make_capsule(std::move(again));
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto capsule = context->saved_data.at(kAgain).toCapsule();
    const auto& again = static_cast<const Again&>(*capsule);
    const at::Tensor x = context->get_saved_variables().front().detach().requires_grad_(true);
    at::Tensor y;
    {
      const at::AutoGradMode on(true);
      const MixedPrecision precision(again.precision, x.device());
      y = again.body(x);
    }
    torch::autograd::backward({y}, gradients);
    return {x.grad(), at::Tensor()};
  }
};

}  // namespace

at::Tensor recomputed(const at::Tensor& x, Body body) {
  return Recomputed::apply(x, c10::make_intrusive<Again>(std::move(body), MixedPrecision::now(x.device())));
}

}  // namespace footplate
