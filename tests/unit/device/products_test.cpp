#include "runtime/device/host_kernels/products.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <tuple>

/// What LibTorch calls.
extern "C" void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* lda, const float* b,
                       const int* ldb, const float* beta, float* c, const int* ldc);

namespace footplate {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class OpenBlasProducts : public ::testing::Test {
 protected:
  void SetUp() override {
    at::manual_seed(7);
    const auto chosen = choose_products(ProductLibrary::openblas);
    ASSERT_TRUE(chosen) << chosen.error().message;
  }
  void TearDown() override { ASSERT_TRUE(choose_products(ProductLibrary::mkl)); }
};

/// A matrix by columns in memory that has `spare` more rows: what is in these is another's.
struct Columns {
  Columns(int the_rows, int columns, int spare)
      : rows(the_rows), stride(std::max(1, the_rows + spare)), all(at::randn({columns, stride})) {}
  at::Tensor matrix() const { return all.narrow(1, 0, rows).t(); }
  float* data() const { return all.mutable_data_ptr<float>(); }
  int rows, stride;
  at::Tensor all;
};

struct Shape {
  bool transpose_a, transpose_b;
  int m, n, k;
  float alpha, beta;
  int spare;  ///< see Columns
};

Shape drawn(std::mt19937& draw, int most) {
  const auto up_to = [&](int limit) { return static_cast<int>(draw() % (static_cast<unsigned>(limit) + 1)); };
  constexpr float kFactors[] = {0, 1, 1, -0.5F, 2.25F};
  return {up_to(1) == 1, up_to(1) == 1,      up_to(most),        up_to(most),
          up_to(most),   kFactors[up_to(4)], kFactors[up_to(4)], up_to(3)};
}

/// The largest error, relative to the sum of the terms' magnitudes. Checks that nothing else was written.
double error_of(const Shape& of) {
  const Columns a(of.transpose_a ? of.k : of.m, of.transpose_a ? of.m : of.k, of.spare);
  const Columns b(of.transpose_b ? of.n : of.k, of.transpose_b ? of.k : of.n, of.spare);
  const Columns c(of.m, of.n, of.spare);
  // A product without its old values reads none of them.
  if (of.beta == 0) c.matrix().fill_(std::numeric_limits<float>::quiet_NaN());
  const at::Tensor before = c.all.clone();
  const auto wide = [](const Columns& one, bool transpose) {
    const at::Tensor matrix = one.matrix().to(at::kDouble);
    return transpose ? matrix.t() : matrix;
  };
  const at::Tensor left = wide(a, of.transpose_a), right = wide(b, of.transpose_b);
  at::Tensor wanted = at::mm(left, right) * of.alpha, size = at::mm(left.abs(), right.abs());
  if (of.beta != 0) {
    const at::Tensor old = c.matrix().to(at::kDouble) * of.beta;
    wanted = wanted + old;
    size = size + old.abs();
  }
  const char of_a = of.transpose_a ? 'T' : 'N', of_b = of.transpose_b ? 'T' : 'N';
  sgemm_(&of_a, &of_b, &of.m, &of.n, &of.k, &of.alpha, a.data(), &a.stride, b.data(), &b.stride, &of.beta,
         c.data(), &c.stride);
  const auto spare = [&](const at::Tensor& all) { return all.narrow(1, of.m, c.stride - of.m); };
  EXPECT_TRUE(at::equal(spare(c.all), spare(before)));
  if (wanted.numel() == 0) return 0;
  const at::Tensor error = (c.matrix().to(at::kDouble) - wanted).abs() / (size + 1e-30);
  return error.isnan().any().item<bool>() ? 1 : error.max().item<double>();
}

std::string text_of(const Shape& of) {
  return fmt::format("{}{} {} x {} x {}, {} and {}, {} rows to spare", of.transpose_a ? 'T' : 'N',
                     of.transpose_b ? 'T' : 'N', of.m, of.n, of.k, of.alpha, of.beta, of.spare);
}

TEST_F(OpenBlasProducts, AreRightForAnyShapeStrideTransposeAndFactor) {
  std::mt19937 draw(7);
  for (int i = 0; i < 10000; ++i) {
    const Shape one = drawn(draw, i % 100 == 0 ? 700 : 40);
    ASSERT_LE(error_of(one), 1e-6) << text_of(one);
  }
}

TEST_F(OpenBlasProducts, OfBatchesAreRight) {
  std::mt19937 draw(7);
  for (int i = 0; i < 300; ++i) {
    const Shape one = drawn(draw, 40);
    const auto batch = [&](int rows, int columns, bool transpose) {
      const at::Tensor made =
          at::randn({5, transpose ? columns : rows, (transpose ? rows : columns) + one.spare});
      const at::Tensor used = made.narrow(2, 0, transpose ? rows : columns);
      return transpose ? used.transpose(1, 2) : used;
    };
    const at::Tensor a = batch(one.m, one.k, one.transpose_a), b = batch(one.k, one.n, one.transpose_b);
    const at::Tensor found = at::bmm(a, b), wanted = at::bmm(a.to(at::kDouble), b.to(at::kDouble));
    const at::Tensor size = at::bmm(a.to(at::kDouble).abs(), b.to(at::kDouble).abs()) + 1e-30;
    if (found.numel() == 0) continue;
    ASSERT_LE(((found.to(at::kDouble) - wanted).abs() / size).max().item<double>(), 1e-6) << text_of(one);
  }
}

TEST_F(OpenBlasProducts, AreWhatLibTorchComputes) {
  const at::Tensor a = at::randn({64, 1000}), b = at::randn({1000, 96}), batch = at::randn({3, 64, 1000}),
                   other = at::randn({3, 1000, 64});
  EXPECT_THAT(products_library(), StartsWith("OpenBLAS 0.3."));
  const at::Tensor product = at::mm(a, b), batched = at::bmm(batch, other);
  ASSERT_TRUE(choose_products(ProductLibrary::mkl));
  EXPECT_EQ(products_library(), "MKL");
  // Another order of a thousand terms: other last digits.
  EXPECT_FALSE(at::equal(at::mm(a, b), product));
  EXPECT_FALSE(at::equal(at::bmm(batch, other), batched));
  EXPECT_LE((at::mm(a, b) - product).abs().max().item<double>(), 1e-3);
  EXPECT_LE((at::bmm(batch, other) - batched).abs().max().item<double>(), 1e-3);
}

TEST_F(OpenBlasProducts, HaveTheSameBitsOnAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const auto& [m, n, k] :
       {std::tuple{700, 900, 300}, {2048, 128, 512}, {128, 512, 2048}, {33, 3000, 70}}) {
    const at::Tensor a = at::randn({m, k}), b = at::randn({k, n}), bias = at::randn({n});
    at::set_num_threads(1);
    const at::Tensor one = at::addmm(bias, a, b), batch = at::bmm(a.expand({6, m, k}), b.expand({6, k, n}));
    for (const int many : {2, 3, 4}) {
      at::set_num_threads(many);
      EXPECT_TRUE(at::equal(at::addmm(bias, a, b), one)) << many << ": " << m << " " << n << " " << k;
      EXPECT_TRUE(at::equal(at::bmm(a.expand({6, m, k}), b.expand({6, k, n})), batch)) << many;
    }
    at::set_num_threads(threads);
  }
}

TEST(Products, AreOpenBlasesByThemselvesWhereMklLeavesOutInstructions) {
  ASSERT_TRUE(choose_products(ProductLibrary::automatic));
  if (mkl_leaves_out_instructions())
    EXPECT_THAT(products_library(), StartsWith("OpenBLAS 0.3."));
  else
    EXPECT_EQ(products_library(), "MKL");
  EXPECT_TRUE(choose_products(ProductLibrary::automatic, "/nowhere/libscipy_openblas.so"));
  EXPECT_EQ(products_library(), "MKL") << "without OpenBLAS, and without an error";
}

TEST(Products, WithoutOpenBlasAreMklsAndTheErrorSaysWhatHelps) {
  const auto chosen = choose_products(ProductLibrary::openblas, "/nowhere/libscipy_openblas.so");
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().kind, ErrorKind::usage);
  EXPECT_THAT(chosen.error().message, HasSubstr("/nowhere/libscipy_openblas.so"));
  EXPECT_THAT(chosen.error().message, HasSubstr("pip install scipy-openblas32"));
  EXPECT_EQ(products_library(), "MKL");
}

}  // namespace
}  // namespace footplate
