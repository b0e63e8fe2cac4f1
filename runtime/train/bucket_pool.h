#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/device/compute_device.h"
#include "runtime/optim/gradient_layout.h"

namespace footplate {

/// Memory for some buckets of a layout at a time, on a device: as much as has been in use at once. One is
/// always there. Training thread.
class BucketPool {
 public:
  explicit BucketPool(at::Device where) : where_(where) {}

  /// Between steps, when all are free. `overlap`: some are on their way to other ranks beside other work.
  void configure(std::vector<GradientLayout::Bucket> buckets, bool overlap);
  const std::vector<GradientLayout::Bucket>& buckets() const { return buckets_; }
  std::size_t on_their_way() const { return overlap_ ? 2 : 0; }

  bool has_free() const { return !free_.empty(); }
  /// Memory of the largest bucket's size; what is in it is undefined. Throws where it has to make some, and
  /// can't.
  at::Tensor take();
  void give_back(at::Tensor memory) { free_.push_back(std::move(memory)); }

 private:
  at::Device where_;
  std::vector<GradientLayout::Bucket> buckets_;
  bool overlap_ = false;
  std::int64_t elements_ = 0;
  std::vector<at::Tensor> free_;
};

/// A bucket's elements, in its memory.
inline Buffer buffer_of(const GradientLayout::Bucket& bucket, const at::Tensor& memory) {
  return {memory.mutable_data_ptr(), bucket.elements.size(), DataType::float32};
}

/// Of the bucket that begins at `begin`, in its memory.
inline at::Tensor part_of(const at::Tensor& memory, std::int64_t begin, const Stretch& elements) {
  return memory.narrow(0, elements.first - begin, elements.size());
}

}  // namespace footplate
