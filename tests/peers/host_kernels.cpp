// Kernels for processors beside LibTorch's own, forward and backward, on one thread. Prints a line of JSON
// for each: the median of ours divided by theirs, measured in turns.
#include <ATen/Parallel.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <vector>

#include "runtime/device/attention.h"
#include "runtime/device/host_kernels/gelu.h"
#include "runtime/device/host_kernels/instructions.h"
#include "runtime/device/host_kernels/products.h"
#include "runtime/device/mixed_precision.h"

namespace footplate {
namespace {

using Clock = std::chrono::steady_clock;
using Work = std::function<void()>;

constexpr int kPairs = 41;
constexpr double kLeastMs = 4;  ///< of a measurement

double ms_of(const Work& work, int times) {
  const auto start = Clock::now();
  for (int i = 0; i < times; ++i) work();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count() / times;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kPairs / 2, values.end());
  return values[kPairs / 2];
}

void compare(const std::string& name, const Work& ours, const Work& theirs) {
  ours();
  const int times = 1 + static_cast<int>(kLeastMs / ms_of(theirs, 3));
  std::vector<double> our_ms, their_ms, ratios;
  for (int pair = 0; pair < kPairs; ++pair) {
    our_ms.push_back(ms_of(ours, times));
    their_ms.push_back(ms_of(theirs, times));
    ratios.push_back(our_ms.back() / their_ms.back());
  }
  fmt::print(R"({{"kernel": "{}", "ours_ms": {:.4f}, "theirs_ms": {:.4f}, "ratio": {:.4f}}})"
             "\n",
             name, median(our_ms), median(their_ms), median(ratios));
}

at::Tensor leaf(at::IntArrayRef shape, at::ScalarType type) {
  return at::randn(shape).to(type).requires_grad_(true);
}

/// As wide as the layers of configs/kjv.lua with a rank's batch of it, and of GPT-2.
void compare_gelu(at::ScalarType type, const char* precision) {
  for (const std::int64_t width : {512, 3072}) {
    const at::Tensor x = leaf({2048, width}, type), incoming = at::randn({2048, width}).to(type);
    const auto backward = [&](const at::Tensor& y) { torch::autograd::grad({y}, {x}, {incoming}); };
    compare(
        fmt::format("gelu {} {}", precision, width), [&] { backward(gelu_tanh(x)); },
        [&] { backward(at::gelu(x, "tanh")); });
  }
}

/// As under autocast: queries come in bf16, and what follows takes bf16.
void compare_attention(std::int64_t length) {
  const std::vector<std::int64_t> shape{4096 / length, 4, length, 32};
  const MixedPrecision precision(Precision::bf16, at::kCPU);
  const at::Tensor query = leaf(shape, at::kBFloat16), key = leaf(shape, at::kBFloat16),
                   value = leaf(shape, at::kBFloat16), incoming = at::randn(shape).to(at::kBFloat16);
  const auto backward = [&](const at::Tensor& y) {
    torch::autograd::grad({y.to(at::kBFloat16)}, {query, key, value}, {incoming});
  };
  compare(
      fmt::format("attention bf16 {}", length), [&] { backward(causal_attention(query, key, value)); },
      [&] { backward(at::scaled_dot_product_attention(query, key, value, {}, 0.0, /*is_causal=*/true)); });
}

void multiply(ProductLibrary library, const at::Tensor& a, const at::Tensor& b) {
  if (auto chosen = choose_products(library); !chosen) throw std::runtime_error(chosen.error().message);
  at::mm(a, b);
}

/// The products of a block of configs/kjv.lua with a rank's batch of it: forward, and both of backward.
void compare_products() {
  constexpr std::int64_t kRows = 2048;
  for (const auto& [in, out] : {std::pair{128, 384}, {128, 512}, {512, 128}, {384, 1536}}) {
    const at::Tensor x = at::randn({kRows, in}), weight = at::randn({out, in}),
                     incoming = at::randn({kRows, out});
    const auto all = [&](ProductLibrary library) {
      multiply(library, x, weight.t());
      multiply(library, incoming, weight);
      multiply(library, incoming.t(), x);
    };
    compare(
        fmt::format("products openblas {}x{}", in, out), [&] { all(ProductLibrary::openblas); },
        [&] { all(ProductLibrary::mkl); });
  }
}

void compare_all() {
  at::set_num_threads(1);
  choose_attention(AttentionKernel::automatic);
  fmt::print(R"({{"instructions": "{}", "bf16_tiles": {}}})"
             "\n",
             name_of(instructions()), multiplies_bf16_tiles());
  compare_gelu(at::kFloat, "fp32");
  compare_gelu(at::kBFloat16, "bf16");
  for (const std::int64_t length : {64, 128, 256, 512, 1024}) compare_attention(length);
  compare_products();
}

}  // namespace
}  // namespace footplate

int main() {
  footplate::compare_all();
}
