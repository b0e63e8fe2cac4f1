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

/// The series as `height` rows of at most `width` columns: a title with the latest value, the curve with its
/// axes, marks as vertical lines with letters, and beneath it what the newest letters stand for. In braille
/// (2 by 4 dots a character), or in ASCII.
std::vector<std::string> plot(const Series& series, std::size_t width, std::size_t height, bool braille);

}  // namespace footplate
