#include "runtime/train/gradient_buffer.h"

#include <ATen/ops/empty.h>

#include <cstddef>

#include "runtime/base/huge_pages.h"

namespace footplate {
namespace {

/// Each gradient starts on a cache line.
constexpr std::int64_t kAlign = 64 / sizeof(float);
constexpr std::int64_t kSums = sizeof(StepSums) / sizeof(float);
static_assert(offsetof(StepSums, loss) == 0, "the one that publish() leaves alone");

std::int64_t aligned(std::int64_t elements) {
  return (elements + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

GradientBuffer::GradientBuffer(const std::vector<Parameter>& parameters, const ComputeDevice& device,
                               std::int64_t others)
    : host_(device.host_floats(kSums)) {
  std::int64_t end = 0;
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    starts_.push_back(end);
    end += aligned(parameter->tensor.numel());
  }
  starts_.push_back(end);
  flat_ = at::empty({end + kSums + others}, at::TensorOptions(at::kFloat).device(device.where()));
  if (device.is_host())
    ask_for_huge_pages({static_cast<std::byte*>(flat_.mutable_data_ptr()), flat_.nbytes()});
  flat_.zero_();
  gradients_ = flat_.narrow(0, 0, end);
  sums_ = flat_.narrow(0, end, kSums);
  loss_ = sums_.narrow(0, 0, 1);
  others_ = flat_.narrow(0, end + kSums, others);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& tensor = parameters[parameters.size() - 1 - i].tensor;
    tensor.mutable_grad() = flat_.narrow(0, starts_[i], tensor.numel()).view(tensor.sizes());
  }
}

void GradientBuffer::zero() {
  flat_.zero_();
  mine() = {};
}

void GradientBuffer::publish() {
  sums_.narrow(0, 1, kSums - 1).copy_(host_.narrow(0, 1, kSums - 1), /*non_blocking=*/true);
}

StepSums GradientBuffer::fetch() {
  host_.copy_(sums_);
  return mine();
}

std::vector<GradientBuffer::Bucket> GradientBuffer::buckets(std::int64_t bytes) const {
  float* data = flat_.mutable_data_ptr<float>();
  const std::size_t count = starts_.size() - 1;
  std::vector<Bucket> buckets;
  std::size_t first = 0;
  for (std::size_t last = 1; last <= count; ++last) {
    const std::int64_t elements = starts_[last] - starts_[first];
    if (last < count && elements * static_cast<std::int64_t>(sizeof(float)) < bytes) continue;
    buckets.push_back({{data + starts_[first], elements, DataType::float32}, first, last});
    first = last;
  }
  if (buckets.empty()) buckets.push_back({{data, 0, DataType::float32}, 0, 0});
  buckets.back().buffer.elements += kSums + others_.numel();
  return buckets;
}

}  // namespace footplate
