#include "runtime/train/arrival_hooks.h"

#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace footplate {
namespace {

class ArrivalHook : public torch::autograd::PostAccumulateGradHook {
 public:
  ArrivalHook(std::shared_ptr<const ArrivalHooks::Arrived> arrived, std::size_t number)
      : arrived_(std::move(arrived)), number_(number) {}
  void operator()(const at::Tensor& parameter) override { (*arrived_)(parameter, number_); }

 private:
  std::shared_ptr<const ArrivalHooks::Arrived> arrived_;
  std::size_t number_;
};

}  // namespace

ArrivalHooks::ArrivalHooks(const std::vector<Parameter>& parameters, Arrived arrived)
    : parameters_(parameters) {
  const auto shared = std::make_shared<const Arrived>(std::move(arrived));
  for (std::size_t i = 0; i < parameters.size(); ++i)
    torch::autograd::impl::set_post_acc_grad_hooks(
        parameters[i].tensor, std::make_unique<ArrivalHook>(shared, parameters.size() - 1 - i));
}

ArrivalHooks::~ArrivalHooks() {
  for (const Parameter& parameter : parameters_)
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
}

}  // namespace footplate
