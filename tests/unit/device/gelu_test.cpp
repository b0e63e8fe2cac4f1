#include "runtime/device/host_kernels/gelu.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <vector>

namespace footplate {
namespace {

class GeluTanh : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(7); }
};

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// What this processor has, and less.
std::vector<Instructions> all_of_this_processor() {
  std::vector<Instructions> found;
  for (const Instructions one : {Instructions::baseline, Instructions::avx2, Instructions::avx512})
    if (one <= instructions()) found.push_back(one);
  return found;
}

struct ValueAndGradient {
  at::Tensor value, gradient;
};

template <class Function>
ValueAndGradient result_of(const Function& function, const at::Tensor& x, const at::Tensor& incoming) {
  const at::Tensor at_x = x.detach().requires_grad_(true);
  const at::Tensor value = function(at_x);
  return {value.detach(), torch::autograd::grad({value}, {at_x}, {incoming}).front()};
}

ValueAndGradient ours(const at::Tensor& x, const at::Tensor& incoming, Instructions use = instructions()) {
  return result_of([use](const at::Tensor& at_x) { return gelu_tanh(at_x, use); }, x, incoming);
}
ValueAndGradient theirs(const at::Tensor& x, const at::Tensor& incoming) {
  return result_of([](const at::Tensor& at_x) { return at::gelu(at_x, "tanh"); }, x, incoming);
}
/// Through the sigmoid, in double precision: LibTorch's form cancels for negative x there, too.
ValueAndGradient exact(const at::Tensor& x, const at::Tensor& incoming) {
  const auto by_sigmoid = [](const at::Tensor& at_x) {
    const double slope = 2 * std::sqrt(2 / M_PI);
    return at_x * (slope * (at_x + 0.044715 * at_x * at_x * at_x)).sigmoid();
  };
  return result_of(by_sigmoid, x.to(at::kDouble), incoming.to(at::kDouble));
}

/// The largest error, relative to the result; results below `least` count as if they were as large.
double error_of(const at::Tensor& found, const at::Tensor& wanted, double least) {
  const at::Tensor error = (found.to(at::kDouble) - wanted).abs();
  return (error / wanted.abs().clamp_min(least)).max().item<double>();
}

at::Tensor many_values() {
  return at::cat({at::linspace(-12, 12, 100003), at::randn({5001}) * 1e-3, at::randn({5001})});
}

TEST_F(GeluTanh, IsExactToTheLastDigitsWithEachSetOfInstructions) {
  const at::Tensor x = many_values(), incoming = at::randn_like(x);
  const ValueAndGradient wanted = exact(x, incoming);
  for (const Instructions use : all_of_this_processor()) {
    const ValueAndGradient found = ours(x, incoming, use);
    EXPECT_LE(error_of(found.value, wanted.value, 1e-3), 1.5e-6) << name_of(use);
    EXPECT_LE(error_of(found.value, wanted.value, 1e-19), 1e-5) << name_of(use);
    // The derivative has a root at -0.75, where the terms cancel.
    EXPECT_LE(error_of(found.gradient, wanted.gradient, 1e-2), 3e-5) << name_of(use);
  }
}

TEST_F(GeluTanh, IsAsExactAsLibTorchs) {
  const at::Tensor x = many_values(), incoming = at::ones_like(x);
  const ValueAndGradient wanted = exact(x, incoming), found = ours(x, incoming),
                         compared = theirs(x, incoming);
  EXPECT_LE(error_of(found.value, wanted.value, 1e-12), error_of(compared.value, wanted.value, 1e-12));
  EXPECT_LE(error_of(found.gradient, wanted.gradient, 1e-2),
            error_of(compared.gradient, wanted.gradient, 1e-2));
}

TEST_F(GeluTanh, OfBf16IsTheOneOfFloatRoundedOnce) {
  const at::Tensor x = many_values().to(at::kBFloat16), incoming = at::randn_like(x);
  const ValueAndGradient wanted = ours(x.to(at::kFloat), incoming.to(at::kFloat));
  for (const Instructions use : all_of_this_processor()) {
    const ValueAndGradient whole = ours(x.to(at::kFloat), incoming.to(at::kFloat), use);
    const ValueAndGradient found = ours(x, incoming, use);
    EXPECT_EQ(found.value.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(at::equal(found.value, whole.value.to(at::kBFloat16))) << name_of(use);
    EXPECT_TRUE(at::equal(found.gradient, whole.gradient.to(at::kBFloat16))) << name_of(use);
  }
}

TEST_F(GeluTanh, HasBitsThatDependOnTheElementAlone) {
  const at::Tensor x = at::randn({100003}), incoming = at::randn({100003});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const ValueAndGradient whole = ours(x, incoming);
  for (const std::int64_t begin : {1, 17, 99990})
    for (const std::int64_t length : {1, 7, 13}) {
      const ValueAndGradient part = ours(x.narrow(0, begin, length), incoming.narrow(0, begin, length));
      EXPECT_TRUE(at::equal(part.value, whole.value.narrow(0, begin, length))) << begin << " " << length;
      EXPECT_TRUE(at::equal(part.gradient, whole.gradient.narrow(0, begin, length)))
          << begin << " " << length;
    }
  at::set_num_threads(3);
  const ValueAndGradient by_three = ours(x, incoming);
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(by_three.value, whole.value));
  EXPECT_TRUE(at::equal(by_three.gradient, whole.gradient));
}

TEST_F(GeluTanh, TakesTensorsOfAnyShapeAndOrder) {
  const at::Tensor x = at::randn({3, 5, 7}), incoming = at::randn({7, 5, 3});
  const ValueAndGradient found = ours(x.transpose(0, 2), incoming);
  const ValueAndGradient wanted = ours(x.transpose(0, 2).contiguous(), incoming);
  EXPECT_TRUE(at::equal(found.value, wanted.value));
  EXPECT_TRUE(at::equal(found.gradient, wanted.gradient));
  EXPECT_EQ(ours(at::empty({0, 4}), at::empty({0, 4})).value.numel(), 0);
  // One gradient for all, as sum() hands it on.
  const at::Tensor one = at::ones({1}).expand({3});
  EXPECT_TRUE(at::equal(ours(x.flatten().narrow(0, 0, 3), one).gradient,
                        ours(x.flatten().narrow(0, 0, 3), one.contiguous()).gradient));
}

TEST_F(GeluTanh, FarOutIsXOrNothing) {
  const at::Tensor x = at::tensor({-1e30F, -50.0F, -1e-30F, 0.0F, 1e-30F, 50.0F, 1e30F});
  for (const Instructions use : all_of_this_processor()) {
    const ValueAndGradient found = ours(x, at::ones_like(x), use);
    EXPECT_TRUE(at::equal(found.value, at::tensor({0.0F, 0.0F, -5e-31F, 0.0F, 5e-31F, 50.0F, 1e30F})))
        << found.value.abs().max();
    EXPECT_TRUE(at::equal(found.gradient, at::tensor({0.0F, 0.0F, 0.5F, 0.5F, 0.5F, 1.0F, 1.0F})));
  }
}

TEST_F(GeluTanh, LeavesWhatIsntANumberVisible) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const Instructions use : all_of_this_processor()) {
      // As many as fill a vector, and a rest.
      const at::Tensor nan = at::full({37}, kNan, type), infinite = at::full({37}, kInfinity, type);
      EXPECT_TRUE(ours(nan, at::ones_like(nan), use).value.isnan().all().item<bool>());
      EXPECT_TRUE(ours(nan, at::ones_like(nan), use).gradient.isnan().all().item<bool>());
      EXPECT_TRUE(ours(infinite, at::ones_like(nan), use).value.isinf().all().item<bool>());
      EXPECT_FALSE(ours(infinite.neg(), at::ones_like(nan), use).value.isfinite().any().item<bool>());
      EXPECT_TRUE(ours(at::ones_like(nan), nan, use).gradient.isnan().all().item<bool>());
      EXPECT_FALSE(ours(at::ones_like(nan), infinite, use).gradient.isfinite().any().item<bool>());
    }
}

TEST_F(GeluTanh, OfDoublesIsLibTorchs) {
  const at::Tensor x = at::randn({100}, at::kDouble), incoming = at::randn({100}, at::kDouble);
  const ValueAndGradient found = ours(x, incoming), wanted = theirs(x, incoming);
  EXPECT_TRUE(at::equal(found.value, wanted.value));
  EXPECT_TRUE(at::equal(found.gradient, wanted.gradient));
}

}  // namespace
}  // namespace footplate
