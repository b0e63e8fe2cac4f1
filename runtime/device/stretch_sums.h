#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <span>

namespace footplate {

/// Sums of stretches of a device's memory in which each word counts by its place: two stretches of one size
/// that differ in one word have different sums, others that differ the same one once in 2^64. By LibTorch's
/// operations on whole numbers, which are exact in any order. Training thread.
class StretchSums {
 public:
  /// Of a stretch, which has whole words of four bytes.
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;

  explicit StretchSums(at::Device where);

  /// One int64 for each stretch, on the device; enqueued, and not waited for.
  at::Tensor of(std::span<const std::span<const std::byte>> stretches);

 private:
  const at::Device where_;
  at::Tensor weights_;   ///< odd numbers
  at::Tensor products_;  ///< of one stretch at a time
};

}  // namespace footplate
