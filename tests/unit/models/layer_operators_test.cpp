// The layers as a task's library calls them: through LibTorch's dispatcher.
#include "runtime/models/layer_operators.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <vector>

#include "footplate/layers.h"
#include "runtime/device/host_kernels/gelu.h"
#include "runtime/device/mixed_precision.h"
#include "runtime/models/recompute.h"

namespace footplate {
namespace {

using Layer = std::function<at::Tensor(const at::Tensor& x)>;

class Layers : public ::testing::Test {
 protected:
  void SetUp() override {
    at::manual_seed(7);
    register_layers();
  }
};

/// The largest distance between a layer's gradient and its slope, in double precision.
double gradient_error(const Layer& layer, const at::Tensor& x) {
  constexpr double kStep = 1e-5;
  const at::Tensor leaf = x.detach().clone().requires_grad_(true);
  const at::Tensor y = layer(leaf), weights = at::randn(y.sizes(), y.options());
  const at::Tensor gradient = torch::autograd::grad({y}, {leaf}, {weights}).front().flatten();
  const at::NoGradGuard no_gradients;
  double worst = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto moved = [&](double by) {
      at::Tensor other = x.detach().clone().contiguous();
      other.flatten()[i] += by;
      return (layer(other) * weights).sum().item<double>();
    };
    const double slope = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    worst = std::max(worst, std::abs(slope - gradient[i].item<double>()));
  }
  return worst;
}

struct Example {
  const char* name;
  Layer layer;
  at::Tensor x;
};

/// Each layer as a function of one tensor; attention of x as queries, keys and values at once.
std::vector<Example> examples() {
  const at::Tensor weight = at::randn({11, 4}, at::kDouble).requires_grad_(true);
  const at::Tensor targets = at::randint(11, {6}, at::kLong);
  return {{"gelu_tanh", [](const at::Tensor& x) { return v1::gelu_tanh(x); }, at::randn({3, 5}, at::kDouble)},
          {"causal_attention", [](const at::Tensor& x) { return v1::causal_attention(x, x.sin(), x.cos()); },
           at::randn({2, 2, 3, 4}, at::kDouble)},
          {"linear_cross_entropy",
           [weight, targets](const at::Tensor& x) { return v1::linear_cross_entropy(x, weight, targets); },
           at::randn({6, 4}, at::kDouble)},
          {"linear_cross_entropy of weight",
           [targets, rows = at::randn({6, 4}, at::kDouble)](const at::Tensor& x) {
             return v1::linear_cross_entropy(rows, x, targets);
           },
           at::randn({11, 4}, at::kDouble)}};
}

TEST_F(Layers, HaveTheGradientsThatTheirSlopesSay) {
  for (const Example& one : examples()) EXPECT_LE(gradient_error(one.layer, one.x), 1e-7) << one.name;
}

TEST_F(Layers, ComputedOnceMoreHaveTheSameGradients) {
  for (const Example& one : examples()) {
    const auto again = [&](const at::Tensor& x) { return recomputed(x, one.layer); };
    EXPECT_LE(gradient_error([&](const at::Tensor& x) { return x.requires_grad() ? again(x) : one.layer(x); },
                             one.x),
              1e-7)
        << one.name;
  }
}

TEST_F(Layers, AreFootplatesOwn) {
  const at::Tensor x = at::randn({1000});
  EXPECT_TRUE(at::equal(v1::gelu_tanh(x), gelu_tanh(x)));
  const MixedPrecision precision(Precision::bf16, at::kCPU);
  const at::Tensor heads = at::randn({1, 2, 8, 4}).to(at::kBFloat16);
  EXPECT_EQ(v1::causal_attention(heads, heads, heads).scalar_type(), at::kFloat);
}

TEST_F(Layers, AreRegisteredOnce) {
  register_layers();
  EXPECT_NO_THROW(v1::gelu_tanh(at::randn({1})));
}

TEST(LayersOfNobody, AreAnErrorThatNamesThem) {
  try {
    v1::detail::layer<at::Tensor(const at::Tensor&)>("swish");
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("footplate::swish"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace footplate
