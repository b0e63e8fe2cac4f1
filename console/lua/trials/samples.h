#pragma once

#include <cstdint>
#include <vector>

namespace footplate::lua {

/// A value that is only known within an error, its standard error: 0 where nothing is known of that.
struct Estimate {
  double value = 0;
  double error = 0;
};

/// One metric as it was logged, each value at a place: its step, or a function of that.
class Samples {
 public:
  /// Fewer have a line through them, but nothing left that tells how far they lie from it.
  static constexpr std::size_t kFewest = 3;

  void add(double place, double value) { samples_.push_back({place, value}); }
  std::size_t size() const { return samples_.size(); }

  /// Of at least one.
  Estimate mean() const;
  double mean_place() const;

  /// Where the straight line through them (least squares) is at `place`; their mean where there are fewer
  /// than kFewest. The error is the line's, not that of a single value there.
  Estimate line_at(double place) const;

 private:
  struct Sample {
    double place, value;
  };
  std::vector<Sample> samples_;
};

}  // namespace footplate::lua
