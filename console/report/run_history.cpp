#include "console/report/run_history.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "protocol/event_line.h"
#include "protocol/value.h"
#include "protocol/words.h"
#include "run_files/line_files.h"

namespace footplate::report {
namespace {

constexpr std::string_view kPhase = "perf/";
constexpr std::string_view kMilliseconds = "_ms";
constexpr std::size_t kLongestText = 400;

/// "forward" of "perf/forward_ms"; "" where the metric is no phase's.
std::string phase_of(const std::string& metric) {
  if (!metric.starts_with(kPhase) || !metric.ends_with(kMilliseconds) || metric == "perf/step_ms") return "";
  return metric.substr(kPhase.size(), metric.size() - kPhase.size() - kMilliseconds.size());
}

/// As it is in a cell of a table.
std::string shown(const Json& value) {
  if (const auto number = number_from_json(value)) return shortest(*number);
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// ckpt.save(tag = a): what was left to its default isn't in it.
std::string shown_call(const Call& call) {
  std::string given;
  for (const auto& [name, value] : call.arguments.items())
    if (!value.is_null() && value != "") given += (given.empty() ? "" : ", ") + name + " = " + shown(value);
  return call.action + "(" + given + ")";
}

class Reader {
 public:
  Reader(RunHistory& history, const std::set<std::string>& wanted) : history_(history), wanted_(wanted) {}

  void metrics(const MetricsLine& line) {
    if (!line.step) return;
    if (line.time) {
      if (history_.first_time == 0) history_.first_time = *line.time;
      history_.last_time = std::max(history_.last_time, *line.time);
    }
    Stretch& stretch = stretch_of(line.branch, *line.step, line.start);
    for (const auto& [name, json] : line.metrics.values.items()) {
      if (name.find('/') == std::string::npos || (!wanted_.empty() && wanted_.count(name) == 0)) continue;
      if (const auto value = number_from_json(json); value && std::isfinite(*value))
        stretch.metrics[name].add(*line.step, *value);
    }
    if (line.metrics.values.contains("perf/step_ms")) add_phases(line.metrics, *line.step);
    if (const auto seconds = line.metrics.number("eval/seconds"); seconds && std::isfinite(*seconds))
      history_.phase_s["evaluation"] += *seconds;
  }

  void event(const Event& event) {
    time_ = event.time;
    std::visit([this](const auto& data) { take(data); }, event.data);
  }

  void start(const StartRecord& start) {
    history_.starts.push_back(start);
    start_steps_[start.start] = static_cast<double>(start.step);
    if (start.start <= 1 && start.resumed.empty()) return;
    const char* how = start.loaded ? " by ckpt.load" : "";
    add(history_.happenings,
        {start.time, start.step, "start",
         "start " + std::to_string(start.start) + " goes on from " + start.resumed + how, false, true});
  }

 private:
  void happened(Topic topic, std::optional<std::int64_t> step, std::string text, bool failure = false) {
    add(history_.happenings,
        {time_, step.value_or(-1), std::string(to_string(topic)), std::move(text), failure});
  }

  void take(const SaveResult& result) {
    history_.phase_s["saving"] += result.seconds;
    if (!result.reason.empty()) happened(Topic::ckpt, result.step, result.reason, true);
  }
  void take(const EvaluationResult& result) {
    if (result.failed) happened(Topic::eval, result.step, result.reason, true);
  }
  void take(const RankChange& change) {
    const bool failure = change.state == RankChangeKind::lost || change.state == RankChangeKind::killed;
    happened(Topic::rank, change.step, *event_line(change), failure);
  }
  void take(const Warning& warning) { happened(Topic::warn, warning.step, warning.text); }
  void take(const Note& note) { happened(Topic::note, note.step, note.text); }
  void take(const RunResult& result) {
    happened(Topic::end, result.step,
             result.reason + ", exit code " + std::to_string(result.code) +
                 (result.note.empty() ? "" : " (" + result.note + ")"));
  }
  /// The rest of what happens is in the metrics, or concerns nobody later.
  template <class Data>
  void take(const Data& /*data*/) {}

  void take(const OrderReport& report) {
    if (report.state == OrderState::refused || report.state == OrderState::aborted)
      return add(history_.happenings, {time_, -1, "order " + std::to_string(report.id),
                                       std::string(to_string(report.state)) + ": " + report.error, false});
    if (report.state != OrderState::applied) return;
    const Order order = report.order.value_or(Order{});
    const Applied applied = report.applied.value_or(Applied{});
    Moment moment{time_, report.applied ? applied.step : -1, order.user, "", false};
    if (moment.who.empty() || order.session.starts_with("rule"))
      moment.who += (moment.who.empty() ? "" : ", ") + order.session;
    std::vector<std::string> parts;
    for (const Moved& moved : applied.moved)
      parts.push_back(moved.name + " " + shown(to_json(moved.before)) + " → " + shown(to_json(moved.after)));
    for (const Call& call : order.calls) parts.push_back(shown_call(call));
    moment.text = join(parts);
    if (!moment.text.empty()) add(history_.changes, std::move(moment));
  }

  Stretch& stretch_of(const std::string& branch, double step, std::int64_t start) {
    auto& all = history_.stretches;
    if (!all.empty() && all.back().branch == branch && step >= all.back().last_step) {
      all.back().last_step = step;
      return all.back();
    }
    // What was trained beyond here is another's past.
    for (Stretch& earlier : all) earlier.left_at = std::min(earlier.left_at, step);
    const auto began = start_steps_.find(start);
    last_logged_ = began == start_steps_.end() || began->second > step ? step : began->second;
    all.push_back({branch, step, step, std::numeric_limits<double>::infinity(), {}});
    return all.back();
  }

  /// What is logged is of the steps since the last line.
  void add_phases(const LoggedMetrics& line, double step) {
    const double steps = std::max(1.0, step - last_logged_);
    last_logged_ = step;
    history_.trained_steps += steps;
    for (const auto& [name, json] : line.values.items())
      if (const std::string phase = phase_of(name); !phase.empty())
        if (const auto value = number_from_json(json); value && std::isfinite(*value))
          history_.phase_s[phase] += *value * steps / 1000;
  }

  static void add(std::vector<Moment>& list, Moment moment) {
    if (moment.text.size() > kLongestText) moment.text = moment.text.substr(0, kLongestText) + "…";
    list.push_back(std::move(moment));
  }

  RunHistory& history_;
  const std::set<std::string>& wanted_;
  std::map<std::int64_t, double> start_steps_;  ///< where each start began
  double last_logged_ = 0;
  std::string time_;  ///< of the event that is taken
};

}  // namespace

RunHistory read_run_history(const RunRecord& run, const std::set<std::string>& wanted) {
  RunHistory history;
  history.record = run;
  Reader reader(history, wanted);
  history.unreadable +=
      read_start_lines(run.directory, [&](const StartRecord& start) { reader.start(start); });
  history.unreadable +=
      read_metrics_lines(run.directory, [&](const MetricsLine& line) { reader.metrics(line); });
  history.unreadable += read_event_lines(run.directory, [&](const Event& event) { reader.event(event); });
  std::stable_sort(history.happenings.begin(), history.happenings.end(),
                   [](const Moment& a, const Moment& b) { return a.time < b.time; });
  return history;
}

}  // namespace footplate::report
