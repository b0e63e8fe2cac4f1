#include "console/report/run_history.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <optional>

#include "protocol/value.h"
#include "run_files/file_names.h"

namespace footplate::report {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPhase = "perf/";
constexpr std::string_view kMilliseconds = "_ms";
constexpr std::size_t kLongestText = 400;

/// Each line that is a JSON object; the last one may lack its end, as of a run that is live.
std::uint64_t for_each_line(const fs::path& path, const std::function<void(const Json&)>& take) {
  std::ifstream file(path);
  std::uint64_t unreadable = 0;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    try {
      if (json.is_object())
        take(json);
      else if (!file.eof())
        ++unreadable;
    } catch (const Json::exception&) {  // of another type than it should be
      ++unreadable;
    }
  }
  return unreadable;
}

std::optional<double> finite(const Json& object, const char* field) {
  const auto found = object.find(field);
  const auto number = found == object.end() ? std::nullopt : number_from_json(*found);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

/// "forward" of "perf/forward_ms"; "" where the metric is no phase's.
std::string phase_of(const std::string& metric) {
  if (!metric.starts_with(kPhase) || !metric.ends_with(kMilliseconds) || metric == "perf/step_ms") return "";
  return metric.substr(kPhase.size(), metric.size() - kPhase.size() - kMilliseconds.size());
}

class Reader {
 public:
  Reader(RunHistory& history, const std::set<std::string>& wanted) : history_(history), wanted_(wanted) {}

  void metrics(const Json& line) {
    const auto step = finite(line, "step");
    if (!step) return;
    if (const auto time = finite(line, "time")) {
      if (history_.first_time == 0) history_.first_time = *time;
      history_.last_time = std::max(history_.last_time, *time);
    }
    Stretch& stretch = stretch_of(text_of(line, "branch"), *step, integer_of(line, "start", 0));
    for (const auto& [name, json] : line.items()) {
      if (name.find('/') == std::string::npos || (!wanted_.empty() && wanted_.count(name) == 0)) continue;
      if (const auto value = number_from_json(json); value && std::isfinite(*value))
        stretch.metrics[name].add(*step, *value);
    }
    if (line.contains("perf/step_ms")) add_phases(line, *step);
    if (const auto seconds = finite(line, "eval/seconds")) history_.phase_s["evaluation"] += *seconds;
  }

  void event(const Json& line) {
    const std::string topic = text_of(line, "topic");
    const Json data = line.value("data", Json::object());
    if (!data.is_object()) return;
    Moment moment{text_of(line, "time"), integer_of(data, "step", -1), topic, text_of(data, "text"), false};
    if (topic == "order") return order(data, std::move(moment));
    if (topic == "ckpt") {
      if (const auto seconds = finite(data, "seconds")) history_.phase_s["saving"] += *seconds;
      if (moment.text = text_of(data, "error"); moment.text.empty()) return;
      moment.failure = true;
    } else if (topic == "eval") {
      if (moment.text = text_of(data, "error"); moment.text.empty()) return;
      moment.failure = true;
    } else if (topic == "rank") {
      if (moment.text.empty())
        moment.text = "rank " + std::to_string(integer_of(data, "rank", 0)) + " " + text_of(data, "state");
      const std::string state = text_of(data, "state");
      moment.failure = state == "lost" || state == "killed" || state == "dead";
    } else if (topic == "end") {
      moment.text = text_of(data, "reason") + ", exit code " + std::to_string(integer_of(data, "code", 0));
      if (const std::string note = text_of(data, "note"); !note.empty()) moment.text += " (" + note + ")";
    } else if (topic != "warn" && topic != "note") {
      return;
    }
    add(history_.happenings, std::move(moment));
  }

  void start(const Json& line) {
    const StartRecord start = start_from_json(line);
    history_.starts.push_back(start);
    start_steps_[start.start] = static_cast<double>(start.step);
    if (start.start <= 1 && start.resumed.empty()) return;
    const char* how = start.loaded ? " by ckpt.load" : "";
    add(history_.happenings,
        {start.time, start.step, "start",
         "start " + std::to_string(start.start) + " goes on from " + start.resumed + how, false});
  }

 private:
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
  void add_phases(const Json& line, double step) {
    const double steps = std::max(1.0, step - last_logged_);
    last_logged_ = step;
    history_.trained_steps += steps;
    for (const auto& [name, json] : line.items())
      if (const std::string phase = phase_of(name); !phase.empty())
        if (const auto value = number_from_json(json); value && std::isfinite(*value))
          history_.phase_s[phase] += *value * steps / 1000;
  }

  void order(const Json& data, Moment moment) {
    const std::string state = text_of(data, "state");
    if (state == "refused" || state == "aborted") {
      moment.who = "order " + std::to_string(integer_of(data, "id", 0));
      moment.text = state + ": " + text_of(data, "error");
      return add(history_.happenings, std::move(moment));
    }
    if (state != "applied") return;
    const Json order = data.value("order", Json::object());
    const Json applied = data.value("applied", Json::object());
    moment.step = integer_of(applied, "step", -1);
    moment.who = text_of(order, "user");
    if (const std::string session = text_of(order, "session");
        moment.who.empty() || session.starts_with("rule"))
      moment.who += (moment.who.empty() ? "" : ", ") + session;
    moment.text.clear();
    const auto say = [&](const std::string& what) {
      moment.text += (moment.text.empty() ? "" : ", ") + what;
    };
    for (const Json& moved : applied.value("moved", Json::array()))
      say(text_of(moved, "name") + " " + shown(moved, "before") + " → " + shown(moved, "after"));
    for (const Json& call : order.value("calls", Json::array())) {
      const Json arguments = call.value("arguments", Json::object());
      std::string given;
      for (const auto& [name, value] : arguments.items())
        if (!value.is_null() && (!value.is_string() || !value.get_ref<const std::string&>().empty()))
          given += (given.empty() ? "" : ", ") + name + " = " + shown(arguments, name.c_str());
      say(text_of(call, "action") + "(" + given + ")");
    }
    if (!moment.text.empty()) add(history_.changes, std::move(moment));
  }

  static std::string shown(const Json& object, const char* field) {
    const auto found = object.find(field);
    if (found == object.end()) return "?";
    if (const auto number = number_from_json(*found)) return shortest(*number);
    return found->is_string() ? found->get<std::string>()
                              : found->dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  static void add(std::vector<Moment>& list, Moment moment) {
    if (moment.text.size() > kLongestText) moment.text = moment.text.substr(0, kLongestText) + "…";
    list.push_back(std::move(moment));
  }

  RunHistory& history_;
  const std::set<std::string>& wanted_;
  std::map<std::int64_t, double> start_steps_;  ///< where each start began
  double last_logged_ = 0;
};

}  // namespace

RunHistory read_run_history(const RunRecord& run, const std::set<std::string>& wanted) {
  RunHistory history;
  history.record = run;
  Reader reader(history, wanted);
  const fs::path& folder = run.directory;
  history.unreadable += for_each_line(folder / kStartsFile, [&](const Json& line) { reader.start(line); });
  history.unreadable += for_each_line(folder / kMetricsFile, [&](const Json& line) { reader.metrics(line); });
  history.unreadable += for_each_line(folder / kEventsFile, [&](const Json& line) { reader.event(line); });
  std::stable_sort(history.happenings.begin(), history.happenings.end(),
                   [](const Moment& a, const Moment& b) { return a.time < b.time; });
  return history;
}

}  // namespace footplate::report
