#include "console/client/render/axis.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace footplate {
namespace {

constexpr std::size_t kFewest = 20;  ///< values: of fewer none is an outlier
constexpr std::size_t kTail = 20;    ///< one in so many at each end may be an outlier
constexpr double kBeyond = 0.25;     ///< of the middle's size: what lies further out is far from the others
constexpr double kWorth = 1.5;       ///< so many times flatter without the cut
constexpr std::size_t kNewest = 10;  ///< one in so many
constexpr std::size_t kLeastTicks = 3;
constexpr double kRounding = 1e-9;  ///< of an interval
constexpr int kMostMultiples = 1000;

std::vector<double> multiples(const AxisRange& range, double interval) {
  std::vector<double> all;
  const double first = std::ceil(range.low / interval - kRounding);
  const double last = std::floor(range.high / interval + kRounding);
  // Counted: values may be so large that one more is the same.
  for (int i = 0; i < kMostMultiples && first + i <= last; ++i)
    all.push_back(first + i == 0 ? 0 : (first + i) * interval);
  return all;
}

/// 1, 2 and 5 times each power of ten within the range, or only these powers.
std::vector<double> powers(const AxisRange& range, bool alone, double every) {
  std::vector<double> all;
  const double first = std::floor(std::log10(range.low)), last = std::ceil(std::log10(range.high));
  const AxisRange wide{range.low * (1 - kRounding), range.high * (1 + kRounding)};
  for (double at = first; at <= last; at += every)
    for (const double factor : {1.0, 2.0, 5.0})
      if (const double value = factor * std::pow(10, at); wide.contains(value) && (factor == 1 || !alone))
        all.push_back(value);
  return all;
}

}  // namespace

void AxisRange::include(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

void AxisRange::widen() {
  if (low < high) return;
  const double room = low == 0 ? 1 : std::abs(low) * 0.1;
  low -= room;
  high += room;
}

AxisRange usual_range(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const AxisRange whole{*least, *most};
  if (values.size() < kFewest) return whole;
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t tail = sorted.size() / kTail;
  const AxisRange middle{sorted[tail], sorted[sorted.size() - 1 - tail]};
  if (middle.size() <= 0) return whole;
  AxisRange usual{std::max(whole.low, middle.low - kBeyond * middle.size()),
                  std::min(whole.high, middle.high + kBeyond * middle.size())};
  for (std::size_t i = values.size() - values.size() / kNewest; i < values.size(); ++i)
    usual.include(values[i]);
  return whole.size() > kWorth * usual.size() ? usual : whole;
}

std::vector<double> ticks(const AxisRange& range, std::size_t most) {
  if (!(range.size() > 0) || !std::isfinite(range.size())) return {range.low};
  const double power = std::pow(10, std::floor(std::log10(range.size() / static_cast<double>(most))));
  std::vector<double> few;
  // The last two only where the others have too many or too few.
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0, 20.0, 3.0, 4.0}) {
    auto all = multiples(range, factor * power);
    if (all.size() > most) continue;
    if (all.size() >= kLeastTicks) return all;
    if (few.empty()) few = std::move(all);
  }
  return few;
}

std::vector<double> log_ticks(const AxisRange& range, std::size_t most) {
  auto all = powers(range, /*alone=*/false, 1);
  if (all.size() < kLeastTicks) return ticks(range, most);
  if (all.size() <= most) return all;
  all = powers(range, /*alone=*/true, 1);
  if (all.size() < kLeastTicks) return ticks(range, most);
  for (double every = 2; all.size() > most; ++every) all = powers(range, /*alone=*/true, every);
  return all;
}

}  // namespace footplate
