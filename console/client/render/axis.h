#pragma once

#include <cstddef>
#include <vector>

namespace footplate {

/// What an axis shows, from `low` to `high`. Of a chart in the report as of a plot on a terminal. Any thread.
struct AxisRange {
  double low = 0;
  double high = 0;

  double size() const { return high - low; }
  bool contains(double value) const { return value >= low && value <= high; }
  void include(double value);
  /// Where it is a single value: room around it.
  void widen();
};

/// A range for finite `values`, at least one, in the order of their steps. A few values that are far from the
/// others, as the first ones of a loss are, stay outside where they would press the rest flat. The newest
/// ones are always inside.
AxisRange usual_range(const std::vector<double>& values);

/// Round values within a range, from 3 up to `most` of them where there are such; `most` is at least 4.
std::vector<double> ticks(const AxisRange& range, std::size_t most);
/// The same for an axis by powers of ten, whose range is above 0.
std::vector<double> log_ticks(const AxisRange& range, std::size_t most);

}  // namespace footplate
