#include "runtime/device/stretch_sums.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include <cassert>
#include <cstdint>
#include <random>

namespace footplate {
namespace {

constexpr std::size_t kWord = sizeof(std::int32_t);

/// The same on all ranks. A word times an odd number keeps all its bits, whatever is lost above the 64th.
at::Tensor odd_numbers(std::int64_t count) {
  at::Tensor numbers = at::empty({count}, at::kLong);
  auto* const first = numbers.mutable_data_ptr<std::int64_t>();
  std::mt19937_64 random(0x666f6f74);
  for (std::int64_t i = 0; i < count; ++i) first[i] = static_cast<std::int64_t>(random() | 1U);
  return numbers;
}

}  // namespace

StretchSums::StretchSums(at::Device where)
    : where_(where), weights_(odd_numbers(kMostBytes / kWord).to(where)) {
  products_ = at::empty_like(weights_);
}

at::Tensor StretchSums::of(std::span<const std::span<const std::byte>> stretches) {
  at::Tensor sums =
      at::empty({static_cast<std::int64_t>(stretches.size())}, at::TensorOptions(at::kLong).device(where_));
  std::int64_t place = 0;
  for (const auto stretch : stretches) {
    assert(stretch.size() <= kMostBytes && stretch.size() % kWord == 0);
    const auto count = static_cast<std::int64_t>(stretch.size() / kWord);
    // Only read.
    void* const from =
        const_cast<std::byte*>(stretch.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    const at::Tensor words = at::from_blob(from, {count}, at::TensorOptions(at::kInt).device(where_));
    at::Tensor products = products_.narrow(0, 0, count);
    at::mul_out(products, words, weights_.narrow(0, 0, count));
    at::Tensor sum = sums.select(0, place++);
    at::sum_out(sum, products, 0);
  }
  return sums;
}

}  // namespace footplate
