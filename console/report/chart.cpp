#include "console/report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "console/client/render/render.h"

namespace footplate::report {
namespace {

// In the units of the drawing, which is scaled to the page.
constexpr double kWidth = 960, kHeight = 260;
constexpr double kLeft = 64, kRight = 12, kTop = 10, kBottom = 26;
constexpr int kRows = 5, kColumns = 9;

struct Extent {
  double from = std::numeric_limits<double>::infinity();
  double to = -std::numeric_limits<double>::infinity();
  void take(double value) {
    from = std::min(from, value);
    to = std::max(to, value);
  }
  bool empty() const { return from > to; }
  double size() const { return to - from; }
};

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

/// 1, 2 or 5 times a power of ten.
double nice_interval(double size, int parts) {
  const double raw = size / parts;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power) return factor * power;
  return 10 * power;
}

class Plane {
 public:
  Plane(Extent x, Extent y) : x_(x), y_(y) {
    if (x_.size() <= 0) x_.to = x_.from + 1;
    const double room = y_.size() > 0 ? y_.size() * 0.04 : std::max(std::abs(y_.from), 1.0) * 0.1;
    y_.from -= room;
    y_.to += room;
  }
  double across(double step) const {
    return kLeft + (step - x_.from) / x_.size() * (kWidth - kLeft - kRight);
  }
  double down(double value) const {
    const double at = kHeight - kBottom - (value - y_.from) / y_.size() * (kHeight - kTop - kBottom);
    return std::clamp(at, kTop, kHeight - kBottom);  // a band's spikes
  }
  std::string point(double step, double value) const {
    return number(across(step)) + "," + number(down(value));
  }

  std::string axes() const {
    std::string svg = "<g class=\"axes\">";
    const double rows = nice_interval(y_.size(), kRows),
                 columns = std::max(1.0, nice_interval(x_.size(), kColumns));
    for (double value = std::ceil(y_.from / rows) * rows; value <= y_.to; value += rows) {
      const double shown = std::abs(value) < rows / 1e6 ? 0 : value;
      const std::string y = number(down(value));
      svg += "<path d=\"M" + number(kLeft) + "," + y + "H" + number(kWidth - kRight) + "\"/><text x=\"" +
             number(kLeft - 6) + "\" y=\"" + y + "\" dy=\"4\" text-anchor=\"end\">" + rounded(shown) +
             "</text>";
    }
    for (double step = std::ceil(x_.from / columns) * columns; step <= x_.to; step += columns)
      svg += "<text x=\"" + number(across(step)) + "\" y=\"" + number(kHeight - 8) +
             "\" text-anchor=\"middle\">" + rounded(step, 12) + "</text>";
    return svg + "</g>";
  }

 private:
  Extent x_, y_;
};

/// `pieces` from `first` up to `end`, which has the next one as well so that the line goes on.
std::string line(const Plane& plane, const std::vector<Series::Piece>& pieces, std::size_t first,
                 std::size_t end, const Curve& curve, bool pale) {
  if (first >= end) return "";
  const std::string color = "c" + std::to_string(curve.color % kColors) + (pale ? " pale" : "");
  std::string points, below, dots;
  for (std::size_t i = first; i < end; ++i) {
    const auto& piece = pieces[i];
    points += plane.point(piece.step(), piece.mean()) + " ";
    below += plane.point(piece.step(), piece.most) + " ";
    if (curve.dots && end - first <= 100)
      dots += "<circle cx=\"" + number(plane.across(piece.step())) + "\" cy=\"" +
              number(plane.down(piece.mean())) + "\" r=\"2.5\"/>";
  }
  for (std::size_t i = end; i > first; --i)
    below += plane.point(pieces[i - 1].step(), pieces[i - 1].least) + " ";
  return "<g class=\"" + color + "\"><polygon points=\"" + below + "\"/><polyline points=\"" + points +
         "\"/>" + dots + "</g>";
}

std::string drawn(const Plane& plane, const Curve& curve) {
  std::string pale, svg;
  for (const Curve::Part& part : curve.parts) {
    const auto& pieces = part.series->pieces();
    const auto left = static_cast<std::size_t>(
        std::find_if(pieces.begin(), pieces.end(),
                     [&](const auto& piece) { return piece.step() >= part.left_at; }) -
        pieces.begin());
    pale +=
        line(plane, pieces, left > 0 && left < pieces.size() ? left - 1 : left, pieces.size(), curve, true);
    svg += line(plane, pieces, 0, left, curve, false);
  }
  return pale + svg;
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string html;
  for (const char c : text) switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  return html;
}

std::string chart(const std::string& title, const std::vector<Curve>& curves, const std::vector<Mark>& marks,
                  double last_step) {
  Extent values;
  for (const Curve& curve : curves)
    for (const Curve::Part& part : curve.parts)
      for (const auto& piece : part.series->pieces()) values.take(piece.mean());
  if (values.empty()) return "";
  const Extent steps{0, last_step};
  const Plane plane(steps, values);
  std::string svg = "<figure><figcaption>" + escaped(title);
  for (const Curve& curve : curves)
    if (curves.size() > 1)
      svg += " <span class=\"key c" + std::to_string(curve.color % kColors) + "\">" + escaped(curve.label) +
             "</span>";
  svg += "</figcaption><svg viewBox=\"0 0 " + number(kWidth) + " " + number(kHeight) +
         "\" role=\"img\" aria-label=\"" + escaped(title) + "\">" + plane.axes();
  for (const Mark& mark : marks) {
    if (mark.step > steps.to) continue;
    svg += std::string("<g class=\"mark") + (mark.failure ? " failure" : "") + "\"><path d=\"M" +
           number(plane.across(mark.step)) + "," + number(kTop) + "V" + number(kHeight - kBottom) +
           "\"/><title>" + escaped(mark.text) + "</title></g>";
  }
  for (const Curve& curve : curves) svg += drawn(plane, curve);
  return svg + "</svg></figure>\n";
}

}  // namespace footplate::report
