#include "runtime/optim/gradient_layout.h"

#include <algorithm>

#include "runtime/comm/chunks.h"

namespace footplate {
namespace {

std::int64_t aligned(std::int64_t elements) {
  return (elements + kBlockAlign - 1) / kBlockAlign * kBlockAlign;
}

}  // namespace

GradientLayout::GradientLayout(const std::vector<v1::Parameter>& parameters, int ranks) : ranks_(ranks) {
  std::int64_t end = 0;
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    by_name_[parameter->name] = starts_.size();
    starts_.push_back(end);
    sizes_.push_back(parameter->tensor.numel());
    end += aligned(parameter->tensor.numel());
  }
  starts_.push_back(padded(end, ranks));
}

std::vector<GradientLayout::Bucket> GradientLayout::buckets(std::int64_t at_least) const {
  const std::size_t count = parameters();
  std::vector<Bucket> buckets;
  std::size_t first = 0;
  for (std::size_t last = 1; last <= count; ++last) {
    const Stretch elements{starts_[first], starts_[last]};
    if (last < count && elements.size() < at_least) continue;
    buckets.push_back({elements, first, last});
    first = last;
  }
  if (buckets.empty()) buckets.emplace_back();
  return buckets;
}

std::vector<GradientLayout::Bucket> GradientLayout::buckets_of_stripes(std::int64_t at_least) const {
  const std::int64_t stripe = stripe_of(ranks_);
  const std::int64_t at_once = std::max<std::int64_t>(1, (at_least + stripe - 1) / stripe) * stripe;
  std::vector<Bucket> buckets;
  in_chunks(elements(), at_once, [&](std::int64_t begin, std::int64_t elements) {
    const std::int64_t end = begin + elements;
    const auto after = [&](std::int64_t place) {
      return std::upper_bound(starts_.begin(), starts_.end() - 1, place) - starts_.begin();
    };
    const auto first = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, after(begin) - 1));
    buckets.push_back({{begin, end}, first, static_cast<std::size_t>(after(end - 1))});
    return true;
  });
  return buckets;
}

}  // namespace footplate
