#include "console/report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "console/client/render/axis.h"
#include "console/client/render/render.h"
#include "console/client/render/text.h"

namespace footplate::report {
namespace {

// In the units of the drawing, which is scaled to the page.
constexpr double kWidth = 960, kHeight = 290;
constexpr double kLeft = 64, kRight = 14, kTop = 42, kBottom = 28;
constexpr double kFloor = kHeight - kBottom, kEnd = kWidth - kRight;
constexpr std::size_t kRows = 6, kColumns = 9;  ///< of the grid, at most
constexpr double kCharacter = 8.2;              ///< the widest of the page's font sizes
constexpr double kStepRoom = 20;                ///< at the right end, for half a step's text
constexpr double kLabelRow = 17;
constexpr std::size_t kLabelRows = 2;
constexpr double kUnlabelled = 8;  ///< is above the plane where there are no labels
constexpr std::size_t kLongestLabel = 36;
constexpr double kOutlier = 0.5;   ///< of the axis: so far beyond it a piece's extreme gets a triangle
constexpr double kFarOff = 2000;   ///< units: a line to somewhere outside may end there
constexpr double kClipApart = 60;  ///< units between two triangles
constexpr std::size_t kMostClips = 8;
constexpr std::size_t kFewDots = 120;
constexpr std::size_t kLeastSmooth = 30;  ///< pieces
struct Smoothing {
  double least;  ///< pieces in a window
  double parts;  ///< or the curve's pieces divided by this
};
constexpr std::array kSmoothings{Smoothing{2, 60}, Smoothing{6, 20}};

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

class Plane {
 public:
  Plane(AxisRange x, AxisRange y) : x_(x), y_(y) {
    x_.widen();
    y_.widen();
    y_.low -= y_.size() * 0.04;
    y_.high += y_.size() * 0.04;
  }
  double across(double step) const { return kLeft + (step - x_.low) / x_.size() * (kEnd - kLeft); }
  double down(double value) const {
    const double at = kFloor - (value - y_.low) / y_.size() * (kFloor - kTop);
    return std::clamp(at, -kFarOff, kFarOff);
  }
  std::string point(double step, double value) const {
    return number(across(step)) + "," + number(down(value));
  }
  const AxisRange& steps() const { return x_; }
  const AxisRange& values() const { return y_; }

  std::string axes() const {
    std::string svg = "<g class=\"axes\">";
    for (const double value : ticks(y_, kRows)) {
      const std::string y = number(down(value));
      svg += "<path d=\"M" + number(kLeft) + "," + y + "H" + number(kEnd) + "\"/><text x=\"" +
             number(kLeft - 7) + "\" y=\"" + y + "\" dy=\"4\" text-anchor=\"end\">" + rounded(value) +
             "</text>";
    }
    for (const double step : ticks(x_, kColumns))
      if (step == std::floor(step))
        svg += "<text x=\"" + number(across(step)) + "\" y=\"" + number(kHeight - 8) + "\" text-anchor=\"" +
               (across(step) > kEnd - kStepRoom ? "end" : "middle") + "\">" + rounded(step, 15) + "</text>";
    return svg + "</g>";
  }

 private:
  AxisRange x_, y_;
};

/// What the axis has of the values: see chart().
std::optional<AxisRange> values_of(const std::vector<Curve>& curves, const ChartLook& look) {
  std::vector<std::pair<double, double>> kept, left;  // step, value
  for (const Curve& curve : curves)
    for (const Curve::Part& part : curve.parts)
      for (const auto& piece : part.series->pieces())
        (piece.step() < part.left_at ? kept : left).emplace_back(piece.step(), piece.mean());
  if (kept.empty()) kept.swap(left);
  if (kept.empty()) return std::nullopt;
  std::sort(kept.begin(), kept.end());
  std::vector<double> values;
  for (const auto& [step, value] : kept) values.push_back(value);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  AxisRange range = look.outliers ? AxisRange{*least, *most} : usual_range(values);
  const double room = look.nearby * std::max(range.size(), std::abs(range.high) * 0.1);
  const AxisRange nearby{range.low - room, range.high + room};
  for (const auto& [step, value] : left)
    if (nearby.contains(value)) range.include(value);
  return range;
}

/// "M…L…" through the pieces; begins anew behind values that are no numbers.
std::string path_of(const Plane& plane, const std::vector<Series::Piece>& pieces,
                    const std::vector<double>& values, const std::vector<Series::Gap>& gaps) {
  std::string path;
  auto gap = gaps.begin();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    bool broken = i == 0;
    for (; gap != gaps.end() && gap->first_step < pieces[i].first_step; ++gap)
      broken = broken || gap->first_step >= pieces[i - 1].last_step;
    path += (broken ? "M" : "L") + plane.point(pieces[i].step(), values[i]);
  }
  return path;
}

std::string band_of(const Plane& plane, const std::vector<Series::Piece>& pieces) {
  if (std::all_of(pieces.begin(), pieces.end(), [](const auto& piece) { return piece.count == 1; }))
    return "";
  std::string points;
  for (const auto& piece : pieces) points += plane.point(piece.step(), piece.most) + " ";
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece)
    points += plane.point(piece->step(), piece->least) + " ";
  return "<polygon points=\"" + points + "\"/>";
}

std::string dots_of(const Plane& plane, const std::vector<Series::Piece>& pieces, const std::string& label) {
  std::string dots;
  for (const auto& piece : pieces)
    if (plane.values().contains(piece.mean()))
      dots += "<circle cx=\"" + number(plane.across(piece.step())) + "\" cy=\"" +
              number(plane.down(piece.mean())) + "\" r=\"3\"><title>" + escaped(label) + " step " +
              rounded(piece.step(), 15) + ": " + rounded(piece.mean()) + "</title></circle>";
  return dots;
}

/// Some pieces of a part: those that were repeated, or the others.
std::string drawn(const Plane& plane, const Curve& curve, const std::vector<Series::Piece>& all,
                  const std::vector<Series::Gap>& gaps, bool pale, bool smooth) {
  if (all.empty()) return "";
  const double share = (all.back().last_step - all.front().first_step) / plane.steps().size();
  const auto pieces = thinned(all, static_cast<std::size_t>(std::max(60.0, share * kWidth)));
  std::vector<double> means;
  for (const auto& piece : pieces) means.push_back(piece.mean());
  const bool smooths = smooth && !curve.dots && pieces.size() >= kLeastSmooth;
  const std::string line = path_of(plane, pieces, means, gaps);
  std::string svg = "<g class=\"" + color_class(curve.color) + (pale ? " pale" : "") +
                    (curve.hollow ? " hollow" : "") + "\">";
  if (!curve.hollow && pieces.size() > 1)
    svg += band_of(plane, pieces) + "<path class=\"" + (smooths ? "raw" : "line") + "\" d=\"" + line + "\"/>";
  for (std::size_t i = 0; smooths && i < kSmoothings.size(); ++i) {
    const double window =
        std::max(kSmoothings.at(i).least, static_cast<double>(pieces.size()) / kSmoothings.at(i).parts);
    svg += "<path class=\"line m" + std::to_string(i + 1) + "\" d=\"" +
           path_of(plane, pieces, smoothed(pieces, window, curve.breaks), gaps) + "\"/>";
  }
  if ((curve.dots && pieces.size() <= kFewDots) || pieces.size() == 1)
    svg += dots_of(plane, pieces, curve.label);
  return svg + "</g>";
}

std::string drawn(const Plane& plane, const Curve& curve, bool smooth) {
  std::string pale, svg;
  if (curve.origin && !curve.parts.front().series->pieces().empty()) {
    const auto& first = curve.parts.front().series->pieces().front();
    svg += "<path class=\"raw " + color_class(curve.color) + "\" d=\"M" +
           plane.point(curve.origin->first, curve.origin->second) + "L" +
           plane.point(first.step(), first.mean()) + "\"/>";
  }
  for (const Curve::Part& part : curve.parts) {
    const auto& pieces = part.series->pieces();
    const auto again = std::find_if(pieces.begin(), pieces.end(),
                                    [&](const auto& piece) { return piece.step() >= part.repeated_at; });
    // The last one before it as well, so that the line goes on.
    const auto from = again != pieces.begin() && again != pieces.end() ? again - 1 : again;
    pale += drawn(plane, curve, {from, pieces.end()}, part.series->gaps(), true, smooth);
    svg += drawn(plane, curve, {pieces.begin(), again}, part.series->gaps(), false, smooth);
  }
  return pale + svg;
}

/// Where a curve leaves the plane: the furthest that it goes there.
struct Clip {
  double x;
  double value;
  bool up;
  std::size_t color;
};

/// `own`: the first one of the same part. `on`: the curve was out there before.
void add_clip(std::vector<Clip>& clips, const Clip& clip, std::size_t own, bool on) {
  if (clips.size() > own) {
    Clip& last = clips.back();
    if (last.up == clip.up && (on || clip.x - last.x < kClipApart)) {
      if (clip.up ? clip.value > last.value : clip.value < last.value) last = clip;
      return;
    }
  }
  clips.push_back(clip);
}

/// The ones that go furthest.
std::vector<Clip> clips_of(const Plane& plane, const std::vector<Curve>& curves) {
  const AxisRange& values = plane.values();
  const double room = kOutlier * values.size();
  std::vector<Clip> clips;
  for (const Curve& curve : curves)
    for (const Curve::Part& part : curve.parts) {
      const std::size_t own = clips.size();
      bool was_above = false, was_below = false;
      for (const auto& piece : part.series->pieces()) {
        const double x = plane.across(piece.step());
        // What a piece has at most may be an outlier that its mean doesn't show.
        const bool above = piece.mean() > values.high || piece.most > values.high + room;
        const bool below = piece.mean() < values.low || piece.least < values.low - room;
        if (above) add_clip(clips, {x, piece.most, true, curve.color}, own, was_above);
        if (below) add_clip(clips, {x, piece.least, false, curve.color}, own, was_below);
        was_above = above;
        was_below = below;
      }
    }
  const auto beyond = [&](const Clip& clip) {
    return clip.up ? clip.value - values.high : values.low - clip.value;
  };
  std::stable_sort(clips.begin(), clips.end(),
                   [&](const Clip& a, const Clip& b) { return beyond(a) > beyond(b); });
  if (clips.size() > kMostClips) clips.resize(kMostClips);
  return clips;
}

std::string drawn_clips(const Plane& plane, const std::vector<Curve>& curves) {
  std::string svg;
  for (const Clip& clip : clips_of(plane, curves)) {
    const double edge = clip.up ? kTop : kFloor, inside = clip.up ? 9 : -9;
    const std::string text = rounded(clip.value);
    const bool at_end = clip.x + 8 + kCharacter * static_cast<double>(text.size()) > kEnd;
    svg += "<g class=\"clip " + color_class(clip.color) + "\"><path d=\"M" + number(clip.x) + "," +
           number(edge) + "l-6," + number(inside) + "h12z\"/><text x=\"" +
           number(clip.x + (at_end ? -9 : 9)) + "\" y=\"" + number(clip.up ? kTop + 11 : kFloor - 3) + "\"" +
           (at_end ? " text-anchor=\"end\"" : "") + ">" + text + "</text><title>up to " + text +
           ", beyond the axis</title></g>";
  }
  return svg;
}

/// Values that are no numbers, at their steps.
std::string drawn_gaps(const Plane& plane, const std::vector<Curve>& curves) {
  std::string svg;
  for (const Curve& curve : curves)
    for (const Curve::Part& part : curve.parts)
      for (const Series::Gap& gap : part.series->gaps()) {
        const double from = plane.across(gap.first_step), to = plane.across(gap.last_step);
        if (from > kEnd) continue;
        svg += "<path class=\"nan\" d=\"M" + number(from - 2) + "," + number(kFloor + 3) + "H" +
               number(std::min(to, kEnd) + 2) + "\"><title>" + escaped(curve.label) + " steps " +
               rounded(gap.first_step, 15) + " to " + rounded(gap.last_step, 15) + ": " +
               std::to_string(gap.count) + " values are NaN or infinite</title></path>";
      }
  return svg;
}

const char* class_of(MomentKind kind) {
  switch (kind) {
    case MomentKind::quiet:
      return "mark quiet";
    case MomentKind::learning_rate:
      return "mark rate";
    case MomentKind::start:
      return "mark start";
    case MomentKind::failure:
      return "mark failure";
    default:
      return "mark";
  }
}

/// Texts above the plane, each in the first row that has room for it.
class Labels {
 public:
  /// Empty where there is no room.
  std::string place(const std::string& label, double x) {
    std::string text = label;
    if (wide(text).size() > kLongestLabel) text = utf8(wide(text).substr(0, kLongestLabel - 1)) + "…";
    const double length = kCharacter * static_cast<double>(wide(text).size());
    const double from = std::max(0.0, std::min(x, kWidth - length));
    const AxisRange room{from, from + length};
    for (std::size_t row = 0; row < kLabelRows; ++row) {
      if (std::any_of(taken_.at(row).begin(), taken_.at(row).end(), [&](const AxisRange& other) {
            return room.low < other.high + kCharacter && other.low < room.high + kCharacter;
          }))
        continue;
      taken_.at(row).push_back(room);
      const double y = kTop - 7 - kLabelRow * static_cast<double>(row);
      return "<text x=\"" + number(room.low) + "\" y=\"" + number(y) + "\">" + escaped(text) + "</text>";
    }
    return "";
  }

 private:
  std::array<std::vector<AxisRange>, kLabelRows> taken_;
};

std::string drawn_marks(const Plane& plane, std::vector<Mark> marks) {
  // Changes of the learning rate are the first to find room.
  std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
    const bool rate = a.kind == MomentKind::learning_rate, other = b.kind == MomentKind::learning_rate;
    return rate != other ? rate : a.step < b.step;
  });
  Labels labels;
  std::string svg;
  for (const Mark& mark : marks) {
    if (!plane.steps().contains(mark.step)) continue;
    const double x = plane.across(mark.step);
    const double from = mark.kind == MomentKind::quiet ? kFloor - 6 : kTop;
    svg += std::string("<g class=\"") + class_of(mark.kind) + "\"><path d=\"M" + number(x) + "," +
           number(from) + "V" + number(kFloor) + "\"/>" +
           (mark.label.empty() ? "" : labels.place(mark.label, x)) + "<title>" + escaped(mark.text) +
           "</title></g>";
  }
  return svg;
}

std::string caption(const std::string& title, const std::vector<Curve>& curves) {
  std::string html = "<figcaption>" + escaped(title);
  std::int64_t missing = 0;
  for (const Curve& curve : curves) {
    double last = std::numeric_limits<double>::quiet_NaN();
    for (const Curve::Part& part : curve.parts) {
      if (!part.series->pieces().empty()) last = part.series->last();
      for (const Series::Gap& gap : part.series->gaps()) missing += gap.count;
    }
    html += " <span class=\"key " + color_class(curve.color) + (curve.hollow ? " hollow" : "") + "\">" +
            (curves.size() > 1 ? escaped(curve.label) + " " : "") + "<b>" + rounded(last) + "</b></span>";
  }
  if (missing > 0)
    html += " <span class=\"bad\">" + std::to_string(missing) + (missing == 1 ? " value is" : " values are") +
            " NaN or infinite</span>";
  return html + "</figcaption>";
}

}  // namespace

std::string color_class(std::size_t color) {
  const std::size_t dash = color / kColors % 3;
  return "c" + std::to_string(color % kColors) + (dash > 0 ? " d" + std::to_string(dash) : "");
}

std::string chart_definitions() {
  return "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><clipPath id=\"plane\"><rect "
         "x=\"" +
         number(kLeft) + "\" y=\"" + number(kTop) + "\" width=\"" + number(kEnd - kLeft + 4) +
         "\" height=\"" + number(kFloor - kTop) + "\"/></clipPath></svg>\n";
}

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
                  const ChartLook& look) {
  const bool any = std::any_of(curves.begin(), curves.end(), [](const Curve& curve) {
    return std::any_of(curve.parts.begin(), curve.parts.end(),
                       [](const Curve::Part& part) { return !part.series->empty(); });
  });
  if (!any) return "";
  const auto values = values_of(curves, look);
  std::string html = "<figure>" + caption(title, curves);
  if (!values) return html + "</figure>\n";
  const Plane plane({look.first_step, look.last_step}, *values);
  const bool labelled =
      std::any_of(marks.begin(), marks.end(), [](const Mark& mark) { return !mark.label.empty(); });
  const double above = labelled ? 0 : kTop - kUnlabelled;
  html += "<svg viewBox=\"0 " + number(above) + " " + number(kWidth) + " " + number(kHeight - above) +
          "\" role=\"img\" aria-label=\"" + escaped(title) + "\">" + plane.axes() +
          drawn_marks(plane, marks) + "<g clip-path=\"url(#plane)\">";
  for (const Curve& curve : curves) html += drawn(plane, curve, look.smooth);
  return html + "</g>" + drawn_clips(plane, curves) + drawn_gaps(plane, curves) + "</svg></figure>\n";
}

}  // namespace footplate::report
