#include "runtime/train/sum_of_squares.h"

#include <ATen/ops/linalg_vector_norm.h>

namespace footplate {
namespace {

/// Added up as floats; a row stays in a processor's first cache.
constexpr std::int64_t kRow = 4096;

}  // namespace

at::Tensor sum_of_squares(const at::Tensor& floats) {
  const std::int64_t rows = floats.numel() / kRow;
  const at::Tensor whole = floats.narrow(0, 0, rows * kRow).view({rows, kRow});
  const at::Tensor rest = floats.narrow(0, rows * kRow, floats.numel() - rows * kRow);
  const at::Tensor norms = at::linalg_vector_norm(whole, 2, at::OptionalIntArrayRef({1}));
  return norms.to(at::kDouble).square().sum().add(at::linalg_vector_norm(rest).to(at::kDouble).square());
}

}  // namespace footplate
