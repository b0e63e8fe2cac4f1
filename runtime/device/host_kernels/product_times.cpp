#include "runtime/device/host_kernels/product_times.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "runtime/device/host_kernels/products.h"

namespace footplate {
namespace {

constexpr int kRounds = 15;
constexpr std::int64_t kRows = 1024;

/// A linear layer with its batch and the gradient of its result.
struct Layer {
  Layer(std::int64_t in, std::int64_t out)
      : x(at::randn({kRows, in})), weight(at::randn({out, in})), incoming(at::randn({kRows, out})) {}
  void forward_and_backward() const {
    at::mm(x, weight.t());
    at::mm(incoming, weight);
    at::mm(incoming.t(), x);
  }
  at::Tensor x, weight, incoming;
};

double ms_of(const std::vector<Layer>& layers) {
  const auto start = std::chrono::steady_clock::now();
  for (const Layer& layer : layers) layer.forward_and_backward();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
  return values[kRounds / 2];
}

}  // namespace

Result<ProductTimes> time_products() {
  at::set_num_threads(1);
  if (auto chosen = choose_products(ProductLibrary::openblas); !chosen) return tl::unexpected(chosen.error());
  const std::string openblas = products_library();
  const std::vector<Layer> layers{{128, 512}, {512, 128}, {384, 1536}};
  std::vector<double> by_mkl, by_openblas, ratios;
  for (int round = -1; round < kRounds; ++round) {
    static_cast<void>(choose_products(ProductLibrary::openblas));
    const double of_openblas = ms_of(layers);
    static_cast<void>(choose_products(ProductLibrary::mkl));
    const double of_mkl = ms_of(layers);
    if (round < 0) continue;  // it touched the memory
    by_openblas.push_back(of_openblas);
    by_mkl.push_back(of_mkl);
    ratios.push_back(of_openblas / of_mkl);
  }
  static_cast<void>(choose_products(ProductLibrary::automatic));
  const std::string automatic(
      to_string(products_library() == kMkl ? ProductLibrary::mkl : ProductLibrary::openblas));
  static_cast<void>(choose_products(ProductLibrary::mkl));
  return ProductTimes{median_of(by_mkl), median_of(by_openblas), median_of(ratios), openblas, automatic};
}

}  // namespace footplate
