#include "console/client/render/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "console/client/render/render.h"
#include "console/client/render/text.h"

namespace footplate {
namespace {

constexpr std::size_t kLabel = 9;   ///< columns of the values at the left
constexpr std::size_t kLegend = 4;  ///< marks explained at most
constexpr std::size_t kLeastRows = 3;
constexpr std::size_t kLetters = 26;

/// A range of numbers that is never empty.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void widen() {
    if (low > high) *this = {0, 1};
    if (low < high) return;
    const double room = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= room;
    high += room;
  }
  double part(double value) const { return (value - low) / (high - low); }
};

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

  /// A character that shows where the curve doesn't pass.
  void put(std::size_t column, std::size_t row, char character) {
    over_[row * columns_ + column] = character;
  }

  std::string row(std::size_t row) const {
    std::wstring text;
    for (std::size_t column = 0; column < columns_; ++column) {
      const unsigned cell = cells_[row * columns_ + column];
      const char over = over_[row * columns_ + column];
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

/// The mean of what falls into each column of dots: a noisy curve stays one line.
std::vector<double> column_means(const Series& series, const Extent& steps, std::size_t columns) {
  std::vector<double> sums(columns, 0);
  std::vector<int> counts(columns, 0);
  for (const auto& point : series.points) {
    if (!std::isfinite(point.value)) continue;
    const std::size_t column = place(steps.part(point.step), columns);
    sums[column] += point.value;
    ++counts[column];
  }
  for (std::size_t i = 0; i < columns; ++i)
    sums[i] = counts[i] > 0 ? sums[i] / counts[i] : std::numeric_limits<double>::quiet_NaN();
  return sums;
}

void draw_curve(Canvas& canvas, const std::vector<double>& means, const Extent& values) {
  std::optional<std::size_t> before;
  const auto height_of = [&](double value) {
    return canvas.dots_down() - 1 - place(values.part(value), canvas.dots_down());
  };
  for (std::size_t x = 0; x < means.size(); ++x) {
    if (std::isnan(means[x])) continue;
    const std::size_t y = height_of(means[x]);
    const std::size_t from = before.value_or(y);
    for (std::size_t between = std::min(from, y); between <= std::max(from, y); ++between)
      canvas.dot(x, between);
    before = y;
  }
}

char letter(std::size_t mark) {
  return static_cast<char>('a' + mark % kLetters);
}

std::string right_aligned(const std::string& text) {
  const std::string shown = text.substr(0, kLabel);
  return std::string(kLabel - shown.size(), ' ') + shown + " ";
}

std::string step_axis(const Extent& steps, std::size_t columns) {
  const std::string first = std::to_string(std::llround(steps.low));
  const std::string last = std::to_string(std::llround(steps.high));
  const std::size_t gap = columns > first.size() + last.size() ? columns - first.size() - last.size() : 1;
  return std::string(kLabel + 1, ' ') + first + std::string(gap, ' ') + last;
}

std::string title(const Series& series) {
  if (series.points.empty()) return series.name + " · nothing has been logged yet";
  const auto& last = series.points.back();
  return series.name + " " + rounded(last.value, 5) + " · step " + std::to_string(std::llround(last.step));
}

}  // namespace

std::vector<std::string> plot(const Series& series, std::size_t width, std::size_t height, bool braille) {
  std::vector<std::string> rows{cut(title(series), width)};
  const std::size_t legend = std::min({kLegend, series.marks.size(), height > 6 ? height - 6 : 0});
  const std::size_t canvas_rows = std::max(kLeastRows, height > legend + 2 ? height - legend - 2 : 0);
  const std::size_t columns = width > kLabel + 9 ? width - kLabel - 2 : 8;
  Extent steps;
  Extent values;
  for (const auto& point : series.points) steps.include(point.step);
  steps.widen();
  Canvas canvas(columns, canvas_rows, braille);
  const auto means = column_means(series, steps, canvas.dots_across());
  for (const double mean : means)
    if (!std::isnan(mean)) values.include(mean);
  values.widen();
  for (std::size_t i = 0; i < series.marks.size(); ++i) {
    const double part = steps.part(series.marks[i].step);
    if (part < 0 || part > 1) continue;
    for (std::size_t row = 1; row < canvas_rows; ++row) canvas.put(place(part, columns), row, ':');
    canvas.put(place(part, columns), 0, letter(i));
  }
  draw_curve(canvas, means, values);
  for (std::size_t row = 0; row < canvas_rows; ++row) {
    std::string label;
    if (row == 0) label = rounded(values.high);
    if (row + 1 == canvas_rows) label = rounded(values.low);
    rows.push_back(right_aligned(label) + canvas.row(row));
  }
  rows.push_back(step_axis(steps, columns));
  for (std::size_t i = series.marks.size() - legend; i < series.marks.size(); ++i)
    rows.push_back(cut(std::string(1, letter(i)) + " step " +
                           std::to_string(std::llround(series.marks[i].step)) + " · " + series.marks[i].text,
                       width));
  return rows;
}

}  // namespace footplate
