#include "console/client/render/metric_log.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "console/client/render/event_text.h"
#include "console/client/runs/run_record.h"
#include "protocol/order.h"
#include "protocol/schema.h"
#include "run_files/file_names.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostRead = 16 << 20;
constexpr std::size_t kMostPoints = 200'000;  ///< of one metric

void each_line(const fs::path& path, auto&& use) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  std::ifstream file(path);
  std::string line;
  if (!error && size > kMostRead) {
    file.seekg(static_cast<std::streamoff>(size - kMostRead));
    std::getline(file, line);  // cut in the middle
  }
  while (std::getline(file, line))
    if (const auto json = parse_line(line); json && json->is_object()) use(*json);
}

}  // namespace

void MetricLog::read(const fs::path& run_directory) {
  each_line(run_directory / kMetricsFile, [this](const Json& line) { add_metrics(line); });
  each_line(run_directory / kEventsFile, [this](const Json& line) {
    if (text_of(line, "topic") == "order") add_order(line.value("data", Json::object()));
  });
}

void MetricLog::add_metrics(const Json& line) {
  const double step = number_of(line, "step");
  if (std::isnan(step)) return;
  for (const auto& [name, value] : line.items()) {
    if (name.find('/') == std::string::npos) continue;
    const auto number = number_from_json(value);
    if (!number) continue;
    auto& points = metrics_[name];
    points.erase(points.upper_bound(step), points.end());
    points[step] = *number;
    if (points.size() > kMostPoints) points.erase(points.begin());
  }
}

void MetricLog::add_order(const Json& report) {
  if (text_of(report, "state") != "applied" || !report.contains("applied")) return;
  const double step = number_of(report["applied"], "step");
  if (std::isnan(step)) return;
  const std::string user = given_by(order_user(report), order_session(report));
  marks_[integer_of(report, "id", 0)] = {step, (user.empty() ? "" : user + ": ") + order_effect(report)};
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
