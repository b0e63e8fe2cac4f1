#include "console/client/render/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "console/client/render/axis.h"
#include "console/client/render/render.h"
#include "console/client/render/text.h"

namespace footplate {
namespace {

constexpr std::size_t kLabel = 9;   ///< columns of the values at the left
constexpr std::size_t kLegend = 4;  ///< marks explained at most
constexpr std::size_t kLeastRows = 3;
constexpr std::size_t kLetters = 26;
constexpr std::size_t kMostTicks = 4;

double part_of(const AxisRange& range, double value) {
  return (value - range.low) / range.size();
}

/// Characters made of dots: 2 by 4 in braille, 1 by 1 in ASCII.
class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows, bool braille)
      : columns_(columns), rows_(rows), braille_(braille), cells_(columns * rows), over_(columns * rows, 0) {}

  std::size_t dots_across() const { return columns_ * (braille_ ? 2 : 1); }
  std::size_t dots_down() const { return rows_ * (braille_ ? 4 : 1); }

  void dot(std::size_t x, std::size_t y) {
    constexpr std::array<std::array<unsigned, 2>, 4> kBits{
        {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    if (braille_)
      cells_[y / 4 * columns_ + x / 2] |= kBits[y % 4][x % 2];
    else
      cells_[y * columns_ + x] = 1;
  }

  /// From one dot to the other, in a straight line.
  void join(std::size_t x0, std::size_t y0, std::size_t x1, std::size_t y1) {
    const double dx = static_cast<double>(x1) - static_cast<double>(x0),
                 dy = static_cast<double>(y1) - static_cast<double>(y0);
    const double length = std::max({std::abs(dx), std::abs(dy), 1.0});
    for (double i = 0; i <= length; ++i)
      dot(static_cast<std::size_t>(std::llround(static_cast<double>(x0) + dx * i / length)),
          static_cast<std::size_t>(std::llround(static_cast<double>(y0) + dy * i / length)));
  }

  /// A character that shows where the curve doesn't pass.
  void put(std::size_t column, std::size_t row, char character) {
    over_[row * columns_ + column] = character;
  }
  /// One that shows in place of the curve, where that has the dot.
  void put_at_dot(std::size_t x, std::size_t y, char character) {
    const std::size_t cell = braille_ ? y / 4 * columns_ + x / 2 : y * columns_ + x;
    over_[cell] = character;
    cells_[cell] = 0;
  }

  std::string row(std::size_t row) const {
    std::wstring text;
    for (std::size_t column = 0; column < columns_; ++column) {
      const std::size_t place = row * columns_ + column;
      const unsigned cell = cells_[place];
      const char over = over_[place];
      if (cell != 0)
        text += braille_ ? static_cast<wchar_t>(0x2800 + cell) : L'*';
      else
        text += over != 0 ? static_cast<wchar_t>(over) : L' ';
    }
    while (!text.empty() && text.back() == L' ') text.pop_back();
    return utf8(text);
  }

 private:
  std::size_t columns_;
  std::size_t rows_;
  bool braille_;
  std::vector<unsigned> cells_;
  std::vector<char> over_;
};

std::size_t place(double part, std::size_t count) {
  return static_cast<std::size_t>(
      std::clamp(std::floor(part * static_cast<double>(count)), 0.0, static_cast<double>(count - 1)));
}

/// What is drawn: values by their place on the axis, logarithms where it goes by powers of ten.
struct Curve {
  std::vector<double> means;  ///< by column of dots; NaN: none
  std::vector<bool> breaks;   ///< a value that is no number lies before this column's
  AxisRange steps{0, 1};
  AxisRange values{0, 1};
};

/// The mean of what falls into each column of dots: a noisy curve stays one line.
Curve curve_of(const std::vector<Series::Point>& points, const PlotOptions& options, std::size_t columns) {
  Curve curve;
  if (!points.empty()) curve.steps = {points.front().step, points.back().step};
  curve.steps.widen();
  std::vector<double> sums(columns, 0);
  std::vector<int> counts(columns, 0);
  curve.breaks.assign(columns, false);
  bool broken = false;
  for (const auto& point : points) {
    const double value = options.log ? std::log10(point.value) : point.value;
    const std::size_t column = place(part_of(curve.steps, point.step), columns);
    if (std::isfinite(value)) {
      curve.breaks[column] = curve.breaks[column] || broken;
      sums[column] += value;
      ++counts[column];
    }
    broken = !std::isfinite(value);
  }
  std::vector<double> drawn;
  for (std::size_t i = 0; i < columns; ++i) {
    curve.means.push_back(counts[i] > 0 ? sums[i] / counts[i] : std::numeric_limits<double>::quiet_NaN());
    if (counts[i] > 0) drawn.push_back(curve.means.back());
  }
  if (!drawn.empty()) curve.values = usual_range(drawn);
  curve.values.widen();
  return curve;
}

void draw_curve(Canvas& canvas, const Curve& curve) {
  std::optional<std::pair<std::size_t, std::size_t>> before;
  std::vector<std::pair<std::size_t, std::size_t>> outside;
  for (std::size_t x = 0; x < curve.means.size(); ++x) {
    if (std::isnan(curve.means[x])) continue;
    const std::size_t y =
        canvas.dots_down() - 1 - place(part_of(curve.values, curve.means[x]), canvas.dots_down());
    const auto [from_x, from_y] = before && !curve.breaks[x] ? *before : std::pair{x, y};
    canvas.join(from_x, from_y, x, y);
    before = {x, y};
    if (!curve.values.contains(curve.means[x])) outside.emplace_back(x, y);
  }
  for (const auto& [x, y] : outside) canvas.put_at_dot(x, y, y == 0 ? '^' : 'v');
}

char letter(std::size_t mark) {
  return static_cast<char>('a' + mark % kLetters);
}

std::string right_aligned(const std::string& text) {
  const std::string shown = text.substr(0, kLabel);
  return std::string(kLabel - shown.size(), ' ') + shown + " ";
}

/// By row: the value that its middle stands for, rounded. Empty for most.
std::vector<std::string> value_labels(const AxisRange& values, bool log, std::size_t rows) {
  std::vector<std::string> labels(rows);
  const auto all = log ? log_ticks({std::pow(10, values.low), std::pow(10, values.high)}, kMostTicks)
                       : ticks(values, kMostTicks);
  for (const double value : all) {
    const double part = part_of(values, log ? std::log10(value) : value);
    labels[rows - 1 - place(part, rows)] = rounded(value);
  }
  return labels;
}

/// Round steps beneath their columns, none into another.
std::string step_axis(const AxisRange& steps, std::size_t columns) {
  std::string row;
  for (const double step : ticks(steps, kMostTicks)) {
    if (step != std::floor(step)) continue;
    const std::string text = rounded(step, 15);
    const std::size_t middle = kLabel + 1 + place(part_of(steps, step), columns);
    const std::size_t at =
        std::min(middle - std::min(middle, text.size() / 2), kLabel + 1 + columns - text.size());
    if (!row.empty() && at < row.size() + 2) continue;
    row.resize(at, ' ');
    row += text;
  }
  return row;
}

std::string title(const Series& series, bool none_above_zero) {
  if (series.points.empty()) return series.name + " · nothing has been logged yet";
  const auto& last = series.points.back();
  return series.name + " " + rounded(last.value, 5) + " · step " + std::to_string(std::llround(last.step)) +
         (none_above_zero ? " · no value is above 0, so the axis isn't logarithmic" : "");
}

/// Those of the last steps that are asked for.
std::vector<Series::Point> newest(const Series& series, double last) {
  auto from = series.points.begin();
  if (last > 0 && !series.points.empty())
    from = std::find_if(series.points.begin(), series.points.end(),
                        [&](const auto& point) { return point.step >= series.points.back().step - last; });
  return {from, series.points.end()};
}

}  // namespace

std::vector<std::string> plot(const Series& series, std::size_t width, std::size_t height,
                              const PlotOptions& asked) {
  const auto points = newest(series, asked.last);
  PlotOptions options = asked;
  if (options.log)
    options.log = std::any_of(points.begin(), points.end(), [](const auto& point) {
      return point.value > 0 && std::isfinite(point.value);
    });
  std::vector<std::string> rows{cut(title(series, asked.log && !options.log && !points.empty()), width)};
  const std::size_t legend = std::min({kLegend, series.marks.size(), height > 6 ? height - 6 : 0});
  const std::size_t canvas_rows = std::max(kLeastRows, height > legend + 2 ? height - legend - 2 : 0);
  const std::size_t columns = width > kLabel + 9 ? width - kLabel - 2 : 8;
  Canvas canvas(columns, canvas_rows, options.braille);
  const Curve curve = curve_of(points, options, canvas.dots_across());
  for (std::size_t i = 0; i < series.marks.size(); ++i) {
    const double part = part_of(curve.steps, series.marks[i].step);
    if (part < 0 || part > 1) continue;
    for (std::size_t row = 1; row < canvas_rows; ++row) canvas.put(place(part, columns), row, ':');
    canvas.put(place(part, columns), 0, letter(i));
  }
  draw_curve(canvas, curve);
  const auto labels = value_labels(curve.values, options.log, canvas_rows);
  for (std::size_t row = 0; row < canvas_rows; ++row)
    rows.push_back(right_aligned(labels[row]) + canvas.row(row));
  rows.push_back(step_axis(curve.steps, columns));
  for (std::size_t i = series.marks.size() - legend; i < series.marks.size(); ++i)
    rows.push_back(cut(std::string(1, letter(i)) + " step " +
                           std::to_string(std::llround(series.marks[i].step)) + " · " + series.marks[i].text,
                       width));
  return rows;
}

}  // namespace footplate
