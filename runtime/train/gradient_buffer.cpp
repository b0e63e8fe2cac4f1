#include "runtime/train/gradient_buffer.h"

#include <ATen/ops/empty.h>

#include <cstddef>

#include "runtime/base/huge_pages.h"

namespace footplate {
namespace {

constexpr std::int64_t kSums = sizeof(StepSums) / sizeof(float);
static_assert(offsetof(StepSums, loss) == 0, "the one that publish() leaves alone");

}  // namespace

GradientBuffer::GradientBuffer(const std::vector<Parameter>& parameters, const ComputeDevice& device,
                               std::int64_t others, int ranks, KeptGradients kept)
    : layout_(parameters, ranks), kept_(kept), host_(device.host_floats(kSums)) {
  const std::int64_t end = kept == KeptGradients::all ? layout_.elements() : 0;
  flat_ = at::empty({end + kSums + others}, at::TensorOptions(at::kFloat).device(device.where()));
  if (device.is_host())
    ask_for_huge_pages({static_cast<std::byte*>(flat_.mutable_data_ptr()), flat_.nbytes()});
  flat_.zero_();
  gradients_ = flat_.narrow(0, 0, end);
  all_sums_ = flat_.narrow(0, end, kSums + others);
  sums_ = all_sums_.narrow(0, 0, kSums);
  loss_ = sums_.narrow(0, 0, 1);
  others_ = all_sums_.narrow(0, kSums, others);
  if (kept != KeptGradients::all) return;
  for (const Parameter& parameter : parameters) {
    const Stretch place = layout_.of(parameter.name);
    parameter.tensor.mutable_grad() =
        flat_.narrow(0, place.first, place.size()).view(parameter.tensor.sizes());
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

Buffer GradientBuffer::stretch(const Stretch& elements) const {
  return {flat_.mutable_data_ptr<float>() + elements.first, elements.size(), DataType::float32};
}

Buffer GradientBuffer::stretch_and_sums(const Stretch& elements) const {
  return stretch({elements.first, elements.end + all_sums_.numel()});
}

}  // namespace footplate
