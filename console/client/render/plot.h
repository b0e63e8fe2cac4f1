#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace footplate {

/// One metric over steps, and what was changed at which step.
struct Series {
  struct Point {
    double step = 0;
    double value = 0;
  };
  struct Mark {
    double step = 0;
    std::string text;
  };
  std::string name;
  std::vector<Point> points;  ///< by step; NaN and infinity leave a gap
  std::vector<Mark> marks;    ///< by step
};

struct PlotOptions {
  bool braille = true;  ///< 2 by 4 dots a character; else ASCII
  bool log = false;     ///< values by powers of ten; those that aren't above 0 are left out
  double last = 0;      ///< only so many of the newest steps; 0: all
};

/// The series as `height` rows of at most `width` columns: a title with the latest value, the curve as a
/// joined line with its axes, marks as vertical lines with letters, and beneath it what the newest letters
/// stand for. Values that are far from the others (usual_range()) show as ^ or v at the edge.
std::vector<std::string> plot(const Series& series, std::size_t width, std::size_t height,
                              const PlotOptions& options);

}  // namespace footplate
