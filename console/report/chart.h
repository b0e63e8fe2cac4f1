#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "console/report/series.h"

namespace footplate::report {

/// A curve of a chart: series one after the other, of which what lies at or beyond `left_at` is drawn pale.
struct Curve {
  struct Part {
    const Series* series;
    double left_at;
  };
  std::string label;
  std::size_t color = 0;  ///< number, of kColors
  bool dots = false;      ///< values that lie far apart: a dot each
  std::vector<Part> parts;
};
inline constexpr std::size_t kColors = 6;

/// A line across a chart: something happened at that step.
struct Mark {
  double step = 0;
  std::string text;  ///< shown when pointed at
  bool failure = false;
};

/// Text for HTML, quotes included.
std::string escaped(const std::string& text);

/// A metric over steps as SVG: means as lines, least to greatest as a band behind them. From
/// step 0 to `last_step`, so that the charts of a page are one below the other. Empty where there is nothing
/// to draw.
std::string chart(const std::string& title, const std::vector<Curve>& curves, const std::vector<Mark>& marks,
                  double last_step);

}  // namespace footplate::report
