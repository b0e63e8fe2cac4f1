#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/device/compute_device.h"
#include "runtime/optim/gradient_layout.h"

namespace footplate {

/// Memory for some buckets of a layout at a time, on a device. One is always there. Training thread.
class BucketPool {
 public:
  explicit BucketPool(at::Device where) : where_(where) {}

  /// Between steps, when all are free. `overlap`: some are on their way to other ranks beside other work.
  void configure(std::vector<GradientLayout::Bucket> buckets, bool overlap);
  const std::vector<GradientLayout::Bucket>& buckets() const { return buckets_; }
  std::size_t on_their_way() const { return overlap_ ? 2 : 0; }

  bool has_free() const { return !free_.empty(); }
  /// Whether it can make more: there was enough memory so far.
  bool may_grow() const { return may_grow_; }
  /// Memory of the largest bucket's size; what is in it is undefined. Throws where it has to make some, and
  /// can't: then it doesn't grow any more until it is configured.
  at::Tensor take();
  void give_back(at::Tensor memory) { free_.push_back(std::move(memory)); }
  /// Between steps: what is rarely needed at once goes back to the device.
  void trim();

 private:
  at::Tensor make();

  at::Device where_;
  std::vector<GradientLayout::Bucket> buckets_;
  bool overlap_ = false, may_grow_ = true;
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
