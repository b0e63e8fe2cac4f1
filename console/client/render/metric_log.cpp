#include "console/client/render/metric_log.h"

#include <algorithm>
#include <cmath>

#include "protocol/event_line.h"
#include "protocol/schema.h"
#include "run_files/line_files.h"

namespace footplate {
namespace {

constexpr std::uintmax_t kMostRead = 16 << 20;
constexpr std::size_t kMostPoints = 200'000;  ///< of one metric
constexpr std::size_t kMostMarks = 2000;      ///< more than a picture has columns

}  // namespace

void MetricLog::read(const std::filesystem::path& run_directory) {
  read_metrics_lines(
      run_directory, [this](const MetricsLine& line) { add_metrics(line.metrics); }, kMostRead);
  read_event_lines(
      run_directory,
      [this](const Event& event) {
        if (const auto* report = std::get_if<OrderReport>(&event.data)) add_order(*report);
      },
      kMostRead);
}

void MetricLog::add_metrics(const LoggedMetrics& line) {
  const double step = line.number("step").value_or(NAN);
  if (std::isnan(step)) return;
  for (const auto& [name, value] : line.values.items()) {
    if (name.find('/') == std::string::npos) continue;
    const auto number = number_from_json(value);
    if (!number) continue;
    auto& points = metrics_[name];
    points.erase(points.upper_bound(step), points.end());
    points[step] = *number;
    if (points.size() > kMostPoints) points.erase(points.begin());
  }
}

void MetricLog::add_order(const OrderReport& report) {
  if (report.state != OrderState::applied || !report.applied) return;
  const std::string giver = order_giver(report);
  marks_[report.id] = {static_cast<double>(report.applied->step),
                       (giver.empty() ? "" : giver + ": ") + order_effect(report)};
  if (marks_.size() > kMostMarks) marks_.erase(marks_.begin());
}

Result<std::string> MetricLog::find(const std::string& name) const {
  if (metrics_.empty() || metrics_.contains(name)) return name;
  if (metrics_.contains("train/" + name)) return "train/" + name;
  std::vector<std::string> known;
  std::vector<std::string> ending;
  for (const auto& [metric, points] : metrics_) {
    known.push_back(metric);
    if (metric.ends_with("/" + name)) ending.push_back(metric);
  }
  if (ending.size() == 1) return ending.front();
  std::string message = "unknown metric '" + name + "'";
  if (const std::string near = nearest(name, known); !near.empty()) message += "; did you mean " + near + "?";
  message += "; there are";
  for (const auto& metric : known) message += " " + metric;
  return fail(ErrorKind::usage, std::move(message));
}

Series MetricLog::series(const std::string& name) const {
  Series series{name, {}, {}};
  if (const auto found = metrics_.find(name); found != metrics_.end())
    for (const auto& [step, value] : found->second) series.points.push_back({step, value});
  for (const auto& [id, mark] : marks_) series.marks.push_back(mark);
  std::stable_sort(series.marks.begin(), series.marks.end(),
                   [](const auto& a, const auto& b) { return a.step < b.step; });
  return series;
}

}  // namespace footplate
