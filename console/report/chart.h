#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "console/report/run_history.h"
#include "console/report/series.h"

namespace footplate::report {

/// A curve of a chart: what a branch's or a run's series have of it, one after the other.
struct Curve {
  struct Part {
    const Series* series;
    double left_at = kNever;      ///< values from there on don't decide what the axis shows
    double repeated_at = kNever;  ///< they are drawn pale from there on
  };
  std::string label;
  std::size_t color = 0;  ///< any number: beyond kColors the lines are dashed
  bool dots = false;      ///< values that lie far apart: a dot each
  bool hollow = false;    ///< of another kind: dots that no line joins
  std::vector<Part> parts = {};
  std::vector<double> breaks =
      {};  ///< steps in their order: what comes after isn't smoothed with what was before
  /// Step and value of the curve that this one comes from; a thin line leads from there to its first dot.
  std::optional<std::pair<double, double>> origin = {};
};
inline constexpr std::size_t kColors = 6;

/// Something that happened at a step: a line across the chart, of a quiet one a tick at its foot.
struct Mark {
  double step = 0;
  std::string text;   ///< shown when pointed at
  std::string label;  ///< above the line, where there is room
  MomentKind kind = MomentKind::change;
};

struct ChartLook {
  static constexpr double kNearby = 0.15;
  double first_step = 0;
  double last_step = 1;
  bool smooth = true;       ///< lines that are smoothed, before the values themselves
  bool outliers = false;    ///< the axis has all values that the run kept
  double nearby = kNearby;  ///< of the axis: so far beyond it what the run left is still shown
};

/// Text for HTML, quotes included.
std::string escaped(const std::string& text);

/// The classes of a curve's color.
std::string color_class(std::size_t color);

/// A metric over steps as SVG: means as lines, least to greatest as a band behind them. The axis has what the
/// run kept, without values that are far from the others (usual_range()), and of what it left what lies
/// near. A triangle at the edge has what lies beyond. Charts of one look have their steps one below the
/// other. Empty where there is nothing to draw.
std::string chart(const std::string& title, const std::vector<Curve>& curves, const std::vector<Mark>& marks,
                  const ChartLook& look);

/// What the charts of a page refer to; once in front of them.
std::string chart_definitions();

}  // namespace footplate::report
