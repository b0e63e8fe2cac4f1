#include "runtime/train/gradient_buffer.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>

#include "runtime/base/huge_pages.h"
#include "runtime/comm/chunks.h"
#include "runtime/comm/shares.h"

namespace footplate {
namespace {

/// Each gradient starts on a cache line.
constexpr std::int64_t kAlign = 64 / sizeof(float);
constexpr std::int64_t kSums = sizeof(StepSums) / sizeof(float);
static_assert(kAlign == kBlockAlign, "no block begins between two parameters");
static_assert(offsetof(StepSums, loss) == 0, "the one that publish() leaves alone");

std::int64_t aligned(std::int64_t elements) {
  return (elements + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

GradientBuffer::GradientBuffer(const std::vector<Parameter>& parameters, const ComputeDevice& device,
                               std::int64_t others, int ranks)
    : ranks_(ranks), host_(device.host_floats(kSums)) {
  std::int64_t end = 0;
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    starts_.push_back(end);
    end += aligned(parameter->tensor.numel());
  }
  end = padded(end, ranks);
  starts_.push_back(end);
  flat_ = at::empty({end + kSums + others}, at::TensorOptions(at::kFloat).device(device.where()));
  if (device.is_host())
    ask_for_huge_pages({static_cast<std::byte*>(flat_.mutable_data_ptr()), flat_.nbytes()});
  flat_.zero_();
  gradients_ = flat_.narrow(0, 0, end);
  all_sums_ = flat_.narrow(0, end, kSums + others);
  sums_ = all_sums_.narrow(0, 0, kSums);
  loss_ = sums_.narrow(0, 0, 1);
  others_ = all_sums_.narrow(0, kSums, others);
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

Buffer GradientBuffer::stretch(std::int64_t first, std::int64_t end) const {
  return {flat_.mutable_data_ptr<float>() + first, end - first, DataType::float32};
}

std::vector<GradientBuffer::Bucket> GradientBuffer::buckets(std::int64_t bytes) const {
  const std::size_t count = starts_.size() - 1;
  std::vector<Bucket> buckets;
  std::size_t first = 0;
  for (std::size_t last = 1; last <= count; ++last) {
    const std::int64_t elements = starts_[last] - starts_[first];
    if (last < count && elements * static_cast<std::int64_t>(sizeof(float)) < bytes) continue;
    buckets.push_back({stretch(starts_[first], starts_[last]), first, last});
    first = last;
  }
  if (buckets.empty()) buckets.push_back({stretch(0, 0), 0, 0});
  buckets.back().buffer.elements += all_sums_.numel();
  return buckets;
}

std::vector<GradientBuffer::Bucket> GradientBuffer::buckets_of_stripes(std::int64_t bytes) const {
  const std::int64_t stripe = stripe_of(ranks_), all = gradients_.numel();
  const std::int64_t wanted = bytes / static_cast<std::int64_t>(sizeof(float));
  const std::int64_t at_once = std::max<std::int64_t>(1, (wanted + stripe - 1) / stripe) * stripe;
  std::vector<Bucket> buckets;
  in_chunks(all, at_once, [&](std::int64_t begin, std::int64_t elements) {
    const std::int64_t end = begin + elements;
    const auto after = [&](std::int64_t place) {
      return std::upper_bound(starts_.begin(), starts_.end() - 1, place) - starts_.begin();
    };
    const auto first = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, after(begin) - 1));
    buckets.push_back({stretch(begin, end), first, static_cast<std::size_t>(after(end - 1))});
    return true;
  });
  return buckets;
}

}  // namespace footplate
